"""One item: its condition's acts in order, then the record.

A generator over the effects of `tutorsim.kernel.flow`. A call that fails for good ends the
item; the record then holds what was reached, marked `failed`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tutorsim.kernel.flow import CallLog, Flow, run_to_failure
from tutorsim.records import Failure
from tutorsim.records.oversight import Labels, OversightRecord, gold_labels, right_labels
from tutorsim.systems.oversight import debate, judgment
from tutorsim.systems.oversight.acts_by_condition import Act
from tutorsim.systems.oversight.scene import ItemScene, Progress

_ACTS: Mapping[Act, Callable[[ItemScene, Progress], Flow[None]]] = {
    Act.BRIEFING: debate.briefing,
    Act.OPENING: debate.opening,
    Act.CROSS: debate.cross,
    Act.REBUTTAL: debate.rebuttal,
    Act.PRESS: debate.press,
    Act.CLOSING: debate.closing,
    Act.ARGUMENT: debate.argument,
    Act.ASSESSMENT: debate.assessment,
    Act.MERGE: debate.merge,
    Act.JUDGMENT: judgment.judgment,
    Act.ALONE: judgment.alone,
    Act.SAMPLES: judgment.samples,
    Act.MEMBERS: judgment.members,
}


def item_flow(scene: ItemScene) -> Flow[OversightRecord]:
    """Label one item.

    Returns:
        The record, with `status` `failed` when a call failed for good.
    """
    progress, calls = Progress(), CallLog()
    failure = yield from run_to_failure(_acts(scene, progress), calls)
    return _record(scene, progress, calls, failure)


def _acts(scene: ItemScene, progress: Progress) -> Flow[None]:
    for act in scene.script.acts:
        yield from _ACTS[act](scene, progress)
        if act is Act.BRIEFING and _asks_quickly(scene):
            yield from judgment.quick(scene, progress)
            if progress.skipped:
                return


def _asks_quickly(scene: ItemScene) -> bool:
    """Only the whole debate is adaptive: its parts and rivals run as they are."""
    return scene.spec.condition == "hpo" and scene.settings.adaptive != "off"


def _record(
    scene: ItemScene, progress: Progress, calls: CallLog, failure: Failure | None
) -> OversightRecord:
    item, label = scene.item, progress.label if failure is None else None
    gold = _gold(scene)
    reached: dict[str, Any] = {**vars(progress), "label": label}
    return OversightRecord(
        episode_id=scene.spec.episode_id,
        benchmark=item.benchmark,
        task_id=item.task_id,
        variant=scene.spec.variant,
        condition=scene.spec.condition,
        repeat=scene.spec.repeat,
        status="complete" if failure is None else "failed",
        failure=failure,
        **calls.fields(),
        conversation=item.conversation,
        tutor=item.tutor,
        dialogue=item.dialogue,
        reply=item.reply,
        audited=item.audited,
        annotation=dict(item.annotation),
        gold=gold,
        unjudged=failure is None and label is None,
        scores=right_labels(label, gold) if failure is None else {},
        **reached,
    )


def _gold(scene: ItemScene) -> Labels | None:
    settings, annotation = scene.settings, scene.item.annotation
    if not annotation:
        return None
    return gold_labels(
        annotation, mistake_map=settings.mistake_map, guidance_map=settings.guidance_map
    )
