"""What another rule would have elected, as far as the ballots cast tell.

    search = PanelSearch(query_of(profile, "ranked", 25))
    search.possible(exempt=0, reading="fallback")

How possible winners are found
------------------------------
1. *A ballot cast becomes a domain* (`ballots_voters_may_cast_and_best_per_candidate`): every ballot
   that its voter may have cast under the target, held as levels of candidates, a known ballot or
   a set; an abstention is `None`, and an exempt voter may cast anything. A `Query` is a target and
   the domains of a panel's voters, sorted, so that equal panels are asked once.
2. *A win becomes a condition* (`win_conditions`): that a candidate wins, with or without the tie
   that an order gives it, is a test of sums over voters. Each voter's domain gives `Options`, rows
   of shape (options, quantities): votes, leads over rivals or margins of pairs.
3. *A condition is searched for* (`search_for_votes_that_meet_a_win_condition`): one option a voter
   whose sum passes. Found is possible; a search that dropped nothing and ends empty proves that it
   is not; one that runs out of its `WorkBudget` leaves the outcome not settled, never guessed.
4. *What needs no search is looked up*: `small_panel_winners` has every election of few voters and
   candidates in tables of outcomes as bits, `runoff_winners` follows who leaves in which round.
5. *Answers* (`possible_winners`): outcomes that are possible for k exempt voters, and the breakdown
   point of a winner, the smallest k at which somebody else may win.

`tests/reference/completions.py` counts every election one by one: the specification of all of it.
"""
