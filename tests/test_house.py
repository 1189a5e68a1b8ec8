"""The house's rules, read from the source of every module: imports, names, output, paths."""

import ast
import re
import subprocess
from pathlib import Path
from typing import NamedTuple, get_args

from tutorsim.vocabularies import Protocol

ROOT = Path(__file__).parents[1]

ROOMS = (
    "vocabularies", "errors", "dask_cluster", "regular_files_and_digests", "system_registry",
    "catalog", "tasks", "ballot_reading_and_decisions", "records", "model", "kernel", "replay",
    "sandbox", "runner", "systems", "standin",
    "pytest_plugin_replayed_studies_and_cassettes", "chat", "opened_run_and_recount_for_python",
    "cli", "__main__",
)  # fmt: skip
"""A room imports only rooms that stand before it."""

FOR_ANALYSIS = {
    "ballot_reading_and_decisions", "records", "vocabularies", "errors",
    "regular_files_and_digests", "system_registry",
}  # fmt: skip
"""What `analysis` may import of `tutorsim`."""

RULES_FOR_ANALYSIS = {
    "tutorsim.analysis.systems.debate.": (
        "tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate."
    ),
    "tutorsim.analysis.systems.group.": "tutorsim.systems.group.speaker_selection_and_its_reasons.",
    "tutorsim.analysis.systems.oversight.": "tutorsim.systems.oversight.reply_reading.",
}
"""A system's view → the pure rule of that system that its recount asks of logged scores."""

ASK_ANALYSIS = ("", "opened_run_and_recount_for_python", "cli")
"""The faces: `import tutorsim`, a run opened in Python, and the command line."""

ONLY_IN = {
    "anthropic": ("tutorsim.model.",),
    "vcr": ("tutorsim.replay.",),
    "polars": (
        "tutorsim.analysis.",
        "tutorsim.tasks.read_task_files_jsonl_parquet_sciq_humaneval.",
        "tutorsim.opened_run_and_recount_for_python.",
    ),
    "altair": ("tutorsim.analysis.",),
    "distributed": ("tutorsim.dask_cluster.",),
    "click": ("tutorsim.cli.",),
    "rich": ("tutorsim.cli.",),
    "fastembed": ("tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings.",),
    "starlette": ("tutorsim.chat.", "tutorsim.standin."),
    "uvicorn": ("tutorsim.chat.", "tutorsim.standin."),
    "torch": ("tutorsim.systems.oversight.train_lora_for_lead_evaluator.",),
    "transformers": ("tutorsim.systems.oversight.train_lora_for_lead_evaluator.",),
    "peft": ("tutorsim.systems.oversight.train_lora_for_lead_evaluator.",),
}
"""Packages that a room, or one module beside it, keeps to itself."""

PURE = (
    "ballot_reading_and_decisions", "vocabularies", "errors", "kernel.flow_drivers_and_call_log",
    "kernel.scene_asks_votes_and_blind_labels", "kernel.retest_flow_and_drawn_turns",
)  # fmt: skip
IMPURE = {"os", "socket", "subprocess", "random", "time", "datetime", "threading", "secrets"}


class Module(NamedTuple):
    name: str
    path: Path
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def room(self) -> str:
        """The first part of the name inside `tutorsim`; "" for its `__init__`."""
        return self.name.partition(".")[2].split(".")[0]


def _module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "analysis":  # imported as `tutorsim.analysis`, through a link
        parts = ("tutorsim", *parts)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Module(name, path, text, tree, tuple(ast.walk(tree)))


MODULES = [
    _module(path)
    for package in ("tutorsim", "analysis")
    for path in sorted((ROOT / package).rglob("*.py"))
]
NAMES = {module.name for module in MODULES}


def broken(rule):
    """Module → where it breaks a rule, of the modules that do."""
    found = {module.name: sorted(rule(module)) for module in MODULES}
    return {name: places for name, places in found.items() if places}


def imported(module):
    """Modules and names imported anywhere in a module, inside functions too."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _base(module, node):
    if not node.level:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    above = module.name.split(".")
    above = above[: len(above) - node.level + is_package]
    return ".".join([*above, *filter(None, [node.module])])


def rooms_imported(module):
    names = (name.split(".") for name in imported(module))
    return {parts[1] for parts in names if parts[0] == "tutorsim" and len(parts) > 1} - {
        "__version__"
    }


def test_there_are_modules_to_look_at():
    assert len(MODULES) > 40
    assert {module.room for module in MODULES} <= {"", "analysis", *ROOMS}


def test_a_room_imports_only_rooms_before_it():
    def wrong(module):
        if module.room == "analysis":
            ruled = {"systems"} if _asks_its_rule_only(module) else set()
            return rooms_imported(module) - FOR_ANALYSIS - {"analysis"} - ruled
        before = ("analysis",) if module.room in ASK_ANALYSIS else ()
        face = (
            "replay",
            "opened_run_and_recount_for_python",
        )  # what `import tutorsim` offers, loaded late
        before += ROOMS[: ROOMS.index(module.room) + 1] if module.room else face
        return rooms_imported(module) - set(before)

    assert broken(wrong) == {}


def _asks_its_rule_only(module):
    """Of its system a view imports nothing but the pure rule that it recounts."""
    of_systems = [name for name in imported(module) if name.startswith("tutorsim.systems.")]
    rules = [rule for view, rule in RULES_FOR_ANALYSIS.items() if module.name.startswith(view)]
    return all(name.startswith(tuple(rules)) for name in of_systems)


def test_of_tutorsim_only_the_faces_import_analysis():
    def wrong(module):
        uses = {name for name in imported(module) if f"{name}.".startswith("tutorsim.analysis.")}
        return set() if module.room in ("analysis", *ASK_ANALYSIS) else uses

    assert broken(wrong) == {}


def test_heavy_packages_stay_in_their_room():
    def wrong(module):
        packages = {name.split(".")[0] for name in imported(module)}
        return {
            package
            for package, home in ONLY_IN.items()
            if package in packages and not f"{module.name}.".startswith(home)
        }

    assert broken(wrong) == {}


def test_pure_rooms_ask_nothing_of_the_machine():
    def wrong(module):
        packages = {name.split(".")[0] for name in imported(module)}
        place = module.name.removeprefix("tutorsim.")
        return packages & IMPURE if place.startswith(PURE) else set()

    assert broken(wrong) == {}
    assert all(any(name.startswith(f"tutorsim.{pure}") for name in NAMES) for pure in PURE)


CHANGING = {
    "analysis.ballots.preflib._Head", "runner.submit_and_poll_batches_in_waves.Submission",
    "runner.submit_and_poll_batches_in_waves._Waiting",
    "replay.manifests_of_recordings_and_retests_provenance.AnsweredBy",
    "runner.early_stops_by_signal_cost_cap_or_outage.Attempts",
    "runner.early_stops_by_signal_cost_cap_or_outage.Budget",
    "runner.early_stops_by_signal_cost_cap_or_outage.Outage",
    "runner.early_stops_by_signal_cost_cap_or_outage.Stop",
    "runner.play_recorded_episodes_and_retests._World", "sandbox.inner.jail.Jail",
    "sandbox.inner.zygote._Pair", "sandbox.start_and_drive_one_zygote.Aftermath",
    "standin.messages_api_routes_and_replies._Batch",
    "systems.debate.council_logs._Vote", "systems.debate.episode_flow_and_study._Progress",
    "systems.group.duels_of_speaker_selection_and_group_study.DuelState",
    "systems.group.lesson_events_stage_progress_and_prompts.Conversation",
    "systems.group.lesson_events_stage_progress_and_prompts.Timeline",
    "systems.group.lesson_flow.LessonState",
    "systems.oversight.judge_and_lead_with_or_without_debate.Progress",
    "systems.panel.episode_flow_and_study._Progress",
}  # fmt: skip
"""Dataclasses whose values change while a command runs; all others are frozen."""


def test_data_is_frozen_but_for_what_changes_as_a_command_runs():
    changing = {
        f"{module.name.removeprefix('tutorsim.')}.{node.name}"
        for module in MODULES
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        for one in map(ast.unparse, node.decorator_list)
        if one.startswith("dataclass") and "frozen=True" not in one
    }
    assert changing == CHANGING


def test_data_of_arrays_is_equal_to_itself_alone():
    """Whether two arrays are equal is an array, which has no truth."""

    def wrong(module):
        for node in module.nodes:
            of = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
            if of.startswith("dataclass") and "eq=False" not in of:
                said = [
                    ast.unparse(one.annotation) for one in node.body if hasattr(one, "annotation")
                ]
                yield from (
                    f"{node.name}: {one}" for one in said if one in ("Ints", "Bools", "Floats")
                )

    assert broken(wrong) == {}


def test_only_the_command_line_prints():
    def wrong(module):
        for node in module.nodes:
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if named and node.func.id == "print" and module.room != "cli":
                yield f"line {node.lineno}"

    assert broken(wrong) == {}


def _declared(module):
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


LISTED = {module.name: _declared(module) for module in MODULES}
"""Module → its `__all__`; `None` without one."""


def _kind_then_name(name):
    """Constants, then classes, then functions, each by name."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def test_names_are_listed_in_packages_alone():
    def wrong(module):
        listed = LISTED[module.name] is not None
        return {"__all__"} if listed and module.path.name != "__init__.py" else set()

    assert broken(wrong) == {}


def _system_of(name):
    """The system that a module belongs to, its own half or its view; `None` for any other."""
    for system in SYSTEMS:
        view = system.replace("tutorsim.", "tutorsim.analysis.", 1)
        if f"{name}.".startswith((f"{system}.", f"{view}.")):
            return system
    return None


def test_no_module_outside_a_system_imports_one():
    """Neither its own half nor its view, nor in a text but the registry's, which is loaded later;
    what systems share stands beside them."""

    def wrong(module):
        if module.name.startswith(("tutorsim.systems.", "tutorsim.system_registry")):
            return set()
        own = _system_of(module.name)
        named = {*imported(module), *_places_named(module)}
        return {name for name in named if _system_of(name) not in (None, own)}

    assert broken(wrong) == {}


def _places_named(module):
    """Modules of the texts `module:name` that a module holds: what they name is loaded later."""
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = re.fullmatch(r"(tutorsim(?:\.\w+)+):\w+", node.value)
            if found:
                yield found[1]


def test_nobody_asks_whether_a_run_is_a_panels():
    """What a system's runs hold is asked of `StudyFacts` and `View`, whichever system it is."""

    def asked(node):
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        of_class = isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        return node.args[1:] if of_class else []

    def names(module):
        for node in module.nodes:
            for side in asked(node):
                yield from (n.id for n in ast.walk(side) if isinstance(n, ast.Name))

    settings = {"DEFAULT_SYSTEM", "StudySettings", "SystemSettings"}
    assert {m.name for m in MODULES if not _system_of(m.name) and settings & {*names(m)}} == set()


def _modules_imported(module):
    """Modules that a module imports anywhere: at its top, inside functions, for types alone."""
    found = set(imported(module))
    return {name if name in NAMES else name.rpartition(".")[0] for name in found} & NAMES


def test_no_modules_import_one_another_in_a_circle():
    """What stands on nothing is taken away, and what nothing stands on, until nothing is left."""
    above = {module.name: _modules_imported(module) - {module.name} for module in MODULES}
    while free := {name for name, asked in above.items() if not asked & above.keys()}:
        above = {name: asked for name, asked in above.items() if name not in free}
    while top := above.keys() - {name for asked in above.values() for name in asked}:
        above = {name: asked for name, asked in above.items() if name not in top}
    assert above == {}


STAND_APART = {
    "tutorsim.sandbox.inner.judge",
    "tutorsim.sandbox.inner.load_program_and_answer_calls",
}
"""Modules that the next rule would make a section of another; the list may only shrink."""
LONGEST, SHORTEST = 700, 60


def test_a_module_that_one_sibling_alone_imports_is_a_section_of_it():
    """Commands, packages, and what is found by its name are none; nor are two of over 700 lines.

    A module of fewer than 60 lines needs a second reader.
    """
    lines = {module.name: module.text.count("\n") for module in MODULES}
    paths = {module.name: module.path for module in MODULES}
    readers: dict[str, set[str]] = {}
    for module in MODULES:
        for name in imported(module):
            asked = name if name in NAMES else name.rpartition(".")[0]
            if asked in NAMES - {module.name}:
                readers.setdefault(asked, set()).add(module.name)

    def is_section(name, reader):
        of_package = paths[reader].name == "__init__.py"
        beside = paths[reader].parent == paths[name].parent and not of_package
        return beside and lines[name] + lines[reader] <= LONGEST

    alone = {
        name: reader
        for name, (reader, *more) in readers.items()
        if not more and paths[name].name != "__init__.py" and not name.startswith("tutorsim.cli.")
    }
    found = {
        name for name, reader in alone.items() if lines[name] < SHORTEST or is_section(name, reader)
    }
    assert found == STAND_APART


def test_public_names_are_listed_in_order():
    def wrong(module):
        declared = LISTED[module.name] or []
        return set() if declared == sorted(set(declared), key=_kind_then_name) else set(declared)

    assert broken(wrong) == {}


def test_public_names_are_listed_completely():
    """Commands and pytest's hooks need no listing: they are found in another way."""

    def wrong(module):
        declared = LISTED[module.name]
        if declared is None:
            return set()
        return {
            node.name
            for node in module.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith(("_", "pytest_"))
            and not any(
                re.search(r"\.(command|group)\(", ast.unparse(d)) for d in node.decorator_list
            )
        } - set(declared)

    assert broken(wrong) == {}


def test_only_listed_names_are_imported_from_a_module():
    def wrong(module):
        for node in module.nodes:
            if isinstance(node, ast.ImportFrom):
                base = _base(module, node)
                known = LISTED.get(base)
                names = {alias.name for alias in node.names}
                submodules = {name for name in names if f"{base}.{name}" in NAMES}
                if known is not None:
                    yield from (f"{base}.{name}" for name in names - submodules - set(known))

    assert broken(wrong) == {}


KERNEL = ("records.base_record_its_line_and_fields_added_later", "kernel", "runner", "replay")
"""Rooms, and modules, that know no system."""
WORDS_OF_THE_PANEL = re.compile(
    r"(?<![a-z])(personas?|vote_final|baseline|winners?|tutors?|students?)(?![a-z])", re.IGNORECASE
)
SYSTEMS = tuple(
    f"tutorsim.systems.{path.parent.name}"
    for path in sorted((ROOT / "tutorsim" / "systems").glob("*/__init__.py"))
)


def test_the_kernel_names_no_system():
    """Neither in code nor in its texts; names of other systems come from the registry."""

    def wrong(module):
        place = module.name.removeprefix("tutorsim.")
        inside = any(place == room or place.startswith(f"{room}.") for room in KERNEL)
        if not inside:
            return set()
        text = "\n".join(_said_in_code(module.tree))
        of_systems = {name for name in imported(module) if name.startswith(SYSTEMS)}
        return {*WORDS_OF_THE_PANEL.findall(text), *of_systems}

    assert broken(wrong) == {}


def _said_in_code(tree):
    """Names and texts of a module, its docstrings left out."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.alias(name=name):
                yield name
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.keyword(arg=str(name)):
                yield name
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt|opt)/\w")
TEXTS = (".py", ".toml", ".jsonl", ".json", ".html", ".j2", ".css", ".txt")


def test_nobody_edits_a_caption_or_a_sentence():
    """A text has places; what stands in them is filled in where the text is made."""

    def is_text(node):
        words = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
        sentence = isinstance(node, ast.JoinedStr) and any(" " in str(one) for one in words)
        return sentence or "caption" in ast.unparse(node) or ast.unparse(node).startswith("listed(")

    def edited(module):
        return {
            ast.unparse(node)
            for node in module.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("replace", "sub")
            and is_text(node.func.value)
        }

    assert broken(edited) == {}


def test_no_text_leaves_open_whether_it_speaks_of_one_or_many():
    """`counted` of `analysis/pages/words_and_safe_text.py` writes `1 turn` and `2 turns`."""

    def wrong(module):
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(r"[a-z]+\(e?s\)(?![\w.])", node.value)

    assert broken(wrong) == {}


def test_the_top_level_holds_what_is_agreed_and_no_file_that_a_tool_left():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    names = {line.partition("/")[0] for line in listed.splitlines()}
    rooms = {"tutorsim", "cassettes", "analysis", "reports", "tests"}
    files = {"pyproject.toml", "README.md", "LICENSE", "constraints.txt"}
    assert {name for name in names if not name.startswith(".")} == rooms | files


def test_no_file_mentions_a_path_of_a_machine():
    paths = [
        path
        for folder in ("tutorsim", "analysis", "tests")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in TEXTS and path != Path(__file__)
    ]
    assert len(paths) > len(MODULES)
    found = {str(path): MACHINE.findall(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: places for name, places in found.items() if places} == {}


_BALLOTS = "tutorsim.analysis.ballots"
FORMATS_BY_NAME = {
    # What a format is: a further one is an entry or a branch here.
    "tutorsim.ballot_reading_and_decisions": "how a reply is read, what a choice says and gives",
    "tutorsim.analysis.counting.ballot_format_conversion": "one ballot for another, by convention",
    "tutorsim.systems.panel.scripted_replies": "how the stand-in casts one",
    # Rules, which count ballots of one format each.
    "tutorsim.analysis.counting.names_and_parameters_of_rules": "rules",
    "tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate": "rules",
    "tutorsim.analysis.identify.possible_winners": "rules",
    "tutorsim.analysis.identify.small_panel_winners": "rules",
    "tutorsim.analysis.identify.win_conditions": "rules",
    "tutorsim.analysis.recount.same_voter_in_two_formats": "ballots that a rule's format allows",
    "tutorsim.analysis.recount.possible_winners_of_every_protocol_by_rule": "rules, approvals",
    "tutorsim.analysis.recount.recount_plan_and_own_rules": "rules, and numbers of approvals",
    "tutorsim.analysis.recount.first_screen_what_was_read_and_verdict": "numbers of approvals",
    "tutorsim.cli.recount": "numbers of approvals",
    "tutorsim.analysis.systems.debate.outcomes_under_every_protocol": "the rules of debates",
    # Closed sets.
    f"{_BALLOTS}.vote_arrays_and_profiles": "the four that a rich one holds",
    f"{_BALLOTS}.wide_rows_list_cells_raw_replies": "what names candidates",
    "tutorsim.analysis.systems.panel.panels_compared_and_ties_of_random_ballots": "closed form",
    "tutorsim.systems.debate.mallm_logs": "the four of the program MALLM",
    # Other things of the same name.
    "tutorsim.analysis.systems.panel.student_outcomes": "a score is what a student's answer gets",
}
"""Modules that compare something with the name of a ballot format, and what is meant."""


def test_no_module_asks_for_a_format_by_its_name_but_those_listed():
    """A property in `FORMATS` is asked for instead, so that a further format is an entry there."""
    names = {*get_args(Protocol)}

    def compared(module):
        for node in module.nodes:
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
            elif isinstance(node, ast.MatchValue):
                sides = [node.value]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                sides = node.args if node.func.attr in ("eq", "ne", "is_in") else []
            else:
                continue
            parts = [part for side in sides for part in (side, *getattr(side, "elts", ()))]
            if any(isinstance(part, ast.Constant) and part.value in names for part in parts):
                yield ast.unparse(node)

    found = {module.name for module in MODULES if any(compared(module))}
    assert found == {*FORMATS_BY_NAME}


def test_array_types_are_declared_once():
    """In `statistics/array_types.py`, under names that say what an array holds."""

    def declared(module):
        if module.name != "tutorsim.analysis.statistics.array_types":
            yield from re.findall(r"NDArray\[.*", module.text)

    assert broken(declared) == {}


WITHOUT_SUBJECT = re.compile(
    r"\W*(Also|As|Its?|Likewise|Of|Otherwise|So|Such|That|Their|Them|There|These|They|Those"
    r"|The same)\b"
)
"""First words of a docstring that speak of what was said before it."""


def _docstrings(module):
    """Texts that document a module, class, function, attribute or constant.

    Docstrings of declared tables and charts are captions, which a page prints below a title.
    """
    for node in module.nodes:
        makers = [ast.unparse(maker) for maker in getattr(node, "decorator_list", ())]
        if any(maker.startswith(("table(", "figure(")) for maker in makers):
            continue
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield str(statement.value.value)


def test_a_docstring_has_a_subject_without_the_line_above_it():
    def wrong(module):
        return {text for text in _docstrings(module) if WITHOUT_SUBJECT.match(text)}

    assert broken(wrong) == {}
