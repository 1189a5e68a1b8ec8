"""The systems that studies can be of, each a package of its own; see `tutorsim.kernel`."""
