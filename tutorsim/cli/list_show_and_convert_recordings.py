"""`tutorsim cassette`: look at recordings without replaying them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutorsim.cli.console_progress_and_safe_text import emit_json, out, safe, tell
from tutorsim.cli.options_that_commands_share import (
    FOLDER,
    PLACE,
    check_episode_named,
    folder_option,
    max_age_option,
)
from tutorsim.cli.printed_prose_and_tables_and_published_files import table
from tutorsim.errors import CheckFailed, MissingCallError, TutorsimError, UsageError
from tutorsim.replay import MANIFEST_FILE, Cassette, Manifest, read_cassette, read_manifest
from tutorsim.replay.cassette_file import CASSETTE_FORMS, CassetteForm
from tutorsim.replay.list_and_check_recordings import (
    JOURNAL_SUFFIX,
    Orphans,
    Recording,
    Retest,
    StudyEpisodes,
    list_calls,
    list_recordings,
    loose_cassettes,
    orphans,
    recorded_before,
    unasked_calls,
    verify_files,
)
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    read_retest_manifest,
    retest_folder,
)

if TYPE_CHECKING:
    from tutorsim.kernel.system_and_loaded_study import LoadedStudy


@click.group()
def cassette() -> None:
    """List, show, verify and convert recordings."""


@cassette.command("list")
@click.argument("root", type=click.Path(path_type=Path, exists=True), default="cassettes")
@click.option(
    "--orphans",
    "show_orphans",
    is_flag=True,
    help="Recordings that no study uses, and episodes that have none; exit 1 if any.",
)
@click.option(
    "--study",
    "studies",
    type=PLACE,
    multiple=True,
    help="Study files to compare with; the shipped ones and each recording's own when left out.",
)
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def list_command(root: Path, show_orphans: bool, studies: tuple[Path, ...], as_json: bool) -> None:
    """List the recordings in ROOT (default: cassettes) and the folders below it."""
    if studies and not show_orphans:
        raise UsageError(
            "--study compares recordings with studies, which --orphans asks for.",
            hint="Add --orphans, or leave --study out.",
        )
    found = list_recordings(root)
    if show_orphans:
        _show_orphans(orphans(found, _study_episodes(found, studies)), as_json=as_json)
    elif as_json:
        emit_json([_recording_value(recording) for recording in found])
    else:
        _show_recordings(found)


def _study_episodes(found: Sequence[Recording], studies: Sequence[Path]) -> Iterator[StudyEpisodes]:
    """Studies named, or all that are found; one that cannot be read or changed has orphans."""
    from tutorsim.kernel.load_and_check_study_file import load_recorded_study, load_study
    from tutorsim.kernel.study_file_and_episode_spec import shipped_studies

    paths = list(studies)
    if not paths:
        paths += shipped_studies().values()
        paths += [recording.folder / "study.toml" for recording in found if not recording.loose]
    for path in paths:
        try:
            own = not studies and path.name == "study.toml"
            loaded = load_recorded_study(path.parent) if own else load_study(path)
            loaded = _in_words_of(loaded, found)
        except TutorsimError as error:
            if studies:
                raise
            tell(f"Passed over: {error.what}")
            continue
        ids = tuple(spec.episode_id for spec in loaded.grid())
        if studies or path.name == "study.toml":
            yield StudyEpisodes(loaded.study.name, loaded.digest(), ids)


def _in_words_of(loaded: "LoadedStudy", found: Sequence[Recording]) -> "LoadedStudy":
    """The study in the wordings of the recording that is of it; as it is where none is."""
    from tutorsim.runner.begin_or_resume_recording import as_begun

    for recording in found:
        begun = as_begun(loaded, recording.folder)
        if recording.manifest and recording.manifest.study_digest == begun.digest():
            return begun
    return loaded


def _show_orphans(found: Orphans, *, as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "recordings": [str(folder) for folder in found.recordings],
                "cassettes": [str(folder / name) for folder, name in found.cassettes],
                "episodes": [{"study": study, "episode_id": e} for study, e in found.episodes],
            }
        )
    else:
        console = out()
        for folder in found.recordings:
            console.print(safe(f"no study uses    {folder}"))
        for folder, name in found.cassettes:
            console.print(safe(f"not in manifest  {folder / name}"))
        for study, episode_id in found.episodes:
            console.print(safe(f"not recorded     {episode_id} (study {study})"))
    if found.recordings or found.cassettes or found.episodes:
        raise click.exceptions.Exit(1)
    tell("No orphans.")


def _recording_value(recording: Recording) -> dict[str, Any]:
    manifest = recording.manifest
    return {
        "folder": str(recording.folder),
        "study": manifest.study_name if manifest else None,
        "provenance": None
        if manifest is None or recording.problem
        else manifest.provenance.model_dump(mode="json"),
        "episodes": len(manifest.episodes) if manifest else None,
        "failed": _failed(manifest) if manifest else None,
        "calls": _calls(manifest) if manifest else _loose_calls(recording.loose),
        "cassettes": len(recording.cassettes),
        "own_panel": bool(recording.loose or recording.loose_journals),
        "half_recorded": len(recording.journals) + len(recording.loose_journals),
        "bytes": recording.size,
        "retest": _retest_value(recording.retest) if recording.retest else None,
        "problem": recording.problem,
    }


def _retest_value(retest: Retest) -> dict[str, Any]:
    manifest = retest.manifest
    return {
        "repeats": manifest.repeats if manifest else None,
        "provenance": manifest.provenance.model_dump(mode="json") if manifest else None,
        "episodes": len(manifest.episodes) if manifest else None,
        "failed_calls": sum(len(e.failures) for e in manifest.episodes) if manifest else None,
        "calls": sum(e.calls for e in manifest.episodes) if manifest else None,
        "cassettes": len(retest.cassettes),
        "half_recorded": len(retest.journals),
        "problem": retest.problem,
    }


def _retest_word(retest: Retest | None) -> str:
    if retest is None:
        return ""
    if retest.manifest is None:
        return "(damaged)" if retest.problem else "(unfinished)"
    calls = sum(entry.calls for entry in retest.manifest.episodes)
    half = f" + {len(retest.journals)} half" if retest.journals else ""
    return f"{retest.manifest.repeats} ×, {calls:,} calls{half}"


def _failed(manifest: Manifest) -> int:
    return sum(entry.status == "failed" for entry in manifest.episodes)


def _calls(manifest: Manifest) -> int:
    return sum(entry.calls for entry in manifest.episodes)


def _loose_calls(loose: Sequence[Cassette]) -> int | None:
    return sum(len(one.interactions) for one in loose) if loose else None


def _show_recordings(found: Sequence[Recording]) -> None:
    headers = ("folder", "study", "answered by", "episodes", "failed", "calls", "MB", "retest")
    rows = [_recording_row(recording) for recording in found]
    out().print(table(headers, rows, left=3) if rows else "No recordings here.")
    for recording in found:
        if recording.journals:
            tell(f"{recording.folder} is half recorded: the command that recorded it goes on.")
        for name in recording.loose_journals:
            tell(
                f"{recording.folder / name}{JOURNAL_SUFFIX} holds what an interrupted recording "
                'paid for: the same program goes on from it with mode "new", and begins again '
                'with mode "all".'
            )


def _recording_row(recording: Recording) -> tuple[str, ...]:
    manifest = recording.manifest
    folder, megabytes = str(recording.folder), f"{recording.size / 1e6:.1f}"
    if recording.loose or recording.loose_journals:
        kinds = ", ".join(sorted({one.kind for one in recording.loose}))
        half = f" + {len(recording.loose_journals)} half" if recording.loose_journals else ""
        cassettes = f"{len(recording.loose):,}{half}"
        calls = f"{_loose_calls(recording.loose) or 0:,}"
        return (folder, "(own panel)", kinds, cassettes, "", calls, megabytes, "")
    if manifest is None:
        half = f"{len(recording.cassettes)} + {len(recording.journals)} half"
        damaged = (recording.folder / MANIFEST_FILE).exists()
        word = "(damaged)" if damaged else "(unfinished)"
        return (folder, word, "", half, "", "", megabytes, "")
    by = f"{manifest.provenance.kind}: {manifest.provenance.name}"
    if recording.problem:
        by = "(contradicted)"
    figures = (len(manifest.episodes), _failed(manifest), _calls(manifest))
    counts = tuple(f"{figure:,}" for figure in figures)
    again = _retest_word(recording.retest)
    return (folder, manifest.study_name, by, *counts, megabytes, again)


@cassette.command("show")
@click.argument("folder", metavar="FOLDER|FILE", type=PLACE)
@click.argument("episode", required=False)
@click.option(
    "--call", "key", metavar="KEY", help="Show one call whole, e.g. 1/vote_final/motivation/1."
)
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def show_command(folder: Path, episode: str | None, key: str | None, as_json: bool) -> None:
    """Show what the recording in FOLDER holds, the calls of one EPISODE, or one call.

    A cassette of a panel of your own is given as FILE, or by its name without ending as EPISODE.

    Calls of a retest come after the others; their keys end in the repeat, as /r01.
    """
    from tutorsim.replay.recorded_calls_event_streams_and_mismatches import check_episode_id

    folder, episode = _folder_and_name(folder, episode)
    if key is not None:
        check_episode_named(episode, "--call")
    loose, findings = loose_cassettes(folder)
    if episode is None and (loose or findings):
        _show_loose(loose, as_json=as_json)
        for finding in findings:
            tell(f"{finding.file}: {finding.problem}")
        return
    if loose or findings:
        if f"{episode}.json" not in {one.name for one in loose} | {one.file for one in findings}:
            raise MissingCallError(
                f"{folder} has no cassette {episode!r}.",
                hint=f"`tutorsim cassette show {folder}` lists those that it has.",
            )
    else:
        manifest = read_manifest(folder)
        if episode is not None:
            check_episode_id(episode)
    if episode is None:
        _show_manifest(manifest, as_json=as_json)
    elif key is None:
        _show_calls(folder, episode, as_json=as_json)
    else:
        _show_call(folder, episode, key, as_json=as_json)


def _folder_and_name(path: Path, episode: str | None) -> tuple[Path, str | None]:
    """The folder, and the name of a cassette that is given as a file."""
    if not path.is_file():
        return path, episode
    if episode is not None:
        raise click.UsageError("Give a cassette as FILE, or FOLDER and EPISODE.")
    return path.parent, path.name.removesuffix(".zst").removesuffix(".json")


def _show_loose(loose: Sequence[Cassette], *, as_json: bool) -> None:
    if as_json:
        emit_json(
            [
                {"cassette": one.name, "kind": one.kind, "calls": len(one.interactions)}
                for one in loose
            ]
        )
        return
    rows = [(one.episode_id, one.kind, str(len(one.interactions))) for one in loose]
    out().print(table(("cassette", "answered by", "calls"), rows, left=2))


def _show_manifest(manifest: Manifest, *, as_json: bool) -> None:
    if as_json:
        emit_json(manifest.model_dump(mode="json"))
        return
    provenance = manifest.provenance
    console = out()
    console.print(safe(f"Study {manifest.study_name}, digest {manifest.study_digest[:12]}…"))
    console.print(
        safe(
            f"Answered by {provenance.kind}: {provenance.name} ({', '.join(provenance.models)}), "
            f"{provenance.recorded_from} to {provenance.recorded_to}"
        )
    )
    rows = [
        (entry.episode_id, entry.status, _outcome(entry.outcome), str(entry.calls))
        for entry in manifest.episodes
    ]
    console.print(table(("episode", "status", "outcome", "calls"), rows, left=3))


def _outcome(outcome: Mapping[str, Any]) -> str:
    """What came of an episode, as `name value` pairs; what has no value is left out."""
    said = {
        name.replace("_", " "): ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in outcome.items()
        if value is not None and value != []
    }
    return " · ".join(f"{name} {value}" for name, value in said.items())


def _cassettes(folder: Path, episode: str) -> Iterator[Cassette]:
    """The episode's cassette, and that of its retest where there is one."""
    yield read_cassette(folder, episode)
    again = retest_folder(folder)
    retest = read_retest_manifest(again)
    if retest is not None and any(entry.episode_id == episode for entry in retest.episodes):
        yield read_cassette(again, episode)


def _show_calls(folder: Path, episode: str, *, as_json: bool) -> None:
    calls = [call for found in _cassettes(folder, episode) for call in list_calls(found)]
    if as_json:
        emit_json([vars(call) for call in calls])
        return
    headers = ("call", "model", "stopped by", "tokens in", "out", "bytes asked", "answered")
    rows = [
        (
            call.key,
            call.model,
            call.stop_reason or "",
            _count(call.input_tokens),
            _count(call.output_tokens),
            f"{call.request_bytes:,}",
            f"{call.response_bytes:,}",
        )
        for call in calls
    ]
    out().print(table(headers, rows, left=3))


def _count(figure: int | None) -> str:
    return "" if figure is None else f"{figure:,}"


def _show_call(folder: Path, episode: str, key: str, *, as_json: bool) -> None:
    from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
        MESSAGES_URI,
        cassette_name,
        is_event_stream,
        request_value,
        response_values,
    )

    held = [found.interactions for found in _cassettes(folder, episode)]
    one = next((calls[key] for calls in held if key in calls), None)
    if one is None:
        raise MissingCallError(
            f"{episode}.json has no call {key!r}.",
            hint=f"`tutorsim cassette show {folder} {episode}` lists its calls.",
        )
    request = request_value(cassette_name(episode), one) if one.request else {}
    kind = one.response_headers.get("content-type", "")
    if as_json:
        said = response_values(one.response, kind)
        whole = said if is_event_stream(kind) else next(iter(said), None)
        emit_json({"key": key, "request": request, "response": whole})
        return
    is_message = one.uri == MESSAGES_URI and not is_event_stream(kind)
    reply = one.reply().text if is_message else one.response
    console = out()
    for title, text in (
        ("System", str(request.get("system", ""))),
        ("Asked", _asked(request)),
        ("Reply", reply),
    ):
        console.print(title, style="bold")
        console.print(safe(text))
        console.print()


def _asked(request: dict[str, Any]) -> str:
    """The user's message; what stands in its place where a request has another shape."""
    messages = request.get("messages")
    match messages:
        case [{"content": str(text)}]:
            return text
    return str(request if messages is None else messages)


@cassette.command("verify")
@click.argument("folder", type=FOLDER)
@max_age_option
def verify_command(folder: Path, earliest: str | None) -> None:
    """Compare every file of a recording with its manifest, without replaying it.

    Cassettes of a panel of your own have no manifest: each must be readable, hold no key, and hold
    no call that its program no longer asks for.
    """
    check_files(folder, earliest)


def check_files(folder: Path, earliest: str | None) -> None:
    """Say that every file of a folder is good and none older than a day, or raise `CheckFailed`."""
    findings = verify_files(folder)
    for finding in findings:
        tell(f"{finding.file}: {finding.problem}")
    if findings:
        raise CheckFailed(
            f"Files of {folder} that differ from what was recorded: {len(findings)}.",
            hint="Restore them from version control, or record again into a new folder.",
        )
    unasked = unasked_calls(folder)
    for finding in unasked:
        tell(f"{finding.file}: {finding.problem}")
    if unasked:
        raise CheckFailed(
            f"Cassettes of {folder} with calls that are not asked for any more: {len(unasked)}.",
            why="The program asked for others when it was last recorded; a replay refuses these.",
            hint='Record again with mode="all", or give partial=True where they may be left.',
        )
    check_age(folder, earliest)
    loose, _ = loose_cassettes(folder)
    if loose:
        each = "The one cassette" if len(loose) == 1 else f"Each of the {len(loose)} cassettes"
        told = f"{each} of {folder} can be read and holds no key"
        out().print(safe(f"{told}; no manifest says what was in it when it was recorded."))
        return
    out().print(safe(f"Every file of {folder} is what the manifest names."))


def check_age(folder: Path, earliest: str | None) -> None:
    """Raise `CheckFailed` if a recording of a folder may be older than a day."""
    old = () if earliest is None else recorded_before(folder, earliest)
    for finding in old:
        tell(f"{finding.file}: {finding.problem}")
    if old:
        raise CheckFailed(
            f"Recordings of {folder} that may be from before {earliest}: {len(old)}.",
            why="Models change behind their names, and a recording does not.",
            hint='Record again: a cassette with mode="all", a study with `tutorsim run` into a new '
            "folder.",
        )


@cassette.command("convert")
@click.argument("folder", type=FOLDER)
@click.option(
    "--to",
    "form",
    type=click.Choice(CASSETTE_FORMS),
    required=True,
    help="Form of the cassettes written.",
)
@folder_option("Folder to write; new or empty.")
def convert_command(folder: Path, form: CassetteForm, output: Path) -> None:
    """Write the recording in FOLDER again, its cassettes as text or compressed.

    Every command reads both forms; recording and stock vcrpy need text. Converting back and
    forth gives the same bytes; the manifest's digests are of the text, and hold for both.

    A recording that lacks wordings gets them, if this tutorsim has them.
    """
    from tutorsim.replay.convert_recording_to_other_form import convert

    done = convert(folder, output, form)
    tell(f"Cassettes of {done.size / 1e6:,.1f} MB ({form}) written to {output}.")
    if done.wordings == "added":
        tell("The recording had no wordings of its own; the recorded ones were added.")
    elif done.wordings == "completed":
        tell("Words that were not held with the recording yet were added to its wordings.")
    elif done.wordings == "unknown":
        tell(
            "The recording has no wordings of its own, and those of this tutorsim are not the "
            "recorded ones: convert it with the tutorsim that recorded it to add them."
        )
