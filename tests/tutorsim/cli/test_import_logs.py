"""`tutorsim import`: logs that are named, and those that come with tutorsim."""

from tutorsim.records import read_run


def test_without_files_the_council_s_rankings_that_come_with_tutorsim_are_taken(shell, tmp_path):
    said = shell("import", "council", "-o", tmp_path / "run")
    assert (said.code, said.out) == (0, f"12 episodes written to {tmp_path / 'run'}.\n")
    assert read_run(tmp_path / "run").system == "debate"


def test_a_program_without_logs_here_needs_files(shell, tmp_path):
    shell("import", "mallm", "-o", tmp_path / "run").fails(2, "No logs of mallm are named")


def test_a_file_that_does_not_exist_is_refused_before_anything_is_read(shell, tmp_path):
    said = shell("import", "council", tmp_path / "gone.json", "-o", tmp_path / "run")
    said.fails(2, "gone.json does not exist")
    assert not (tmp_path / "run").exists()
