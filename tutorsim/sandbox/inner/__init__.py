"""What runs on the far side: the zygote process and the two children it forks for each program.

The zygote is started by path, with an interpreter that sees no installed package, so these
modules import the standard library and one another only, and only relatively.
"""
