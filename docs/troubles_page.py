"""The tables of docs/troubles.md and docs/zh/troubles.md, which make.py writes."""

from __future__ import annotations

from npu_shim.troubles.table import Text, Trouble, topic_titles, troubles

_HEAD = Text(
    "| symptom | cause | fix | found by | source |\n| --- | --- | --- | --- | --- |",
    "| 现象 | 原因 | 解决办法 | 由谁发现 | 来源 |\n| --- | --- | --- | --- | --- |",
)
_FINDERS = {
    "library": Text("npu_shim", "npu_shim"),
    "doctor": Text("`npu-shim doctor`", "`npu-shim doctor`"),
    **{verb: Text(f"`npu-shim {verb}`", f"`npu-shim {verb}`") for verb in ("assess", "run", "verify", "launch")},
}
_LOG = Text("`npu-shim doctor --log`", "`npu-shim doctor --log`")
_PAGE_ONLY = Text("this page", "本页")


def troubles_markdown(language: str) -> str:
    """Return the tables in a language, a section for each topic.

    Args:
        language: "en" or "zh".
    """
    sections = []
    for topic, title in topic_titles().items():
        rows = [_markdown_row(trouble, language) for trouble in troubles() if trouble.topic == topic]
        sections.append("\n".join([f"## {getattr(title, language)}", "", getattr(_HEAD, language), *rows]))
    return "\n\n".join(sections) + "\n"


def _markdown_row(trouble: Trouble, language: str) -> str:
    finders = [_FINDERS.get(name, Text(name, name)) for name in trouble.found_by]
    finders += [_LOG] if trouble.patterns else []
    found_by = ", ".join(getattr(finder, language) for finder in finders or [_PAGE_ONLY])
    if trouble.how:
        found_by += (": " if language == "en" else "：") + getattr(trouble.how, language)
    symptom, cause, fix = (getattr(text, language) for text in (trouble.symptom, trouble.cause, trouble.fix))
    return f'| <a id="{trouble.id}"></a>{symptom} | {cause} | {fix} | {found_by} | {trouble.source} |'
