"""What each system adds to analysis: its tables, summary, report, traces and outcomes.

A system's view is one value of `system_view_opened_run_and_cost.View`, named in
`tutorsim.system_registry` or by the `view` of another package's system. Commands find it by the
run's head.
"""
