"""Says where a new line goes: the paths that the instructions name, else the layout that exists, else topic files."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.names import check_path
from memory_pipelines.records import Entry, Fact
from memory_pipelines.stages.lines import read
from memory_pipelines.stages.similarity import fold, likeness, sense, stem

LONGEST_ENTRY = 100_000
"""Characters; an entry is never made longer."""

DEFAULT_PATH = "/notes.md"
"""For what has no topic."""

_CLOSE = 0.5  # likeness from which a line pulls a new one into its entry

_TOPICS = """
    preferences: preference preferences prefs pref style styles taste likes formatting settings tone
        preferencias preferencia estilo gustos 偏好 喜好 风格 تفضيلات
    procedures: procedure procedures workflow workflows process processes how-to howto steps runbook runbooks routine
        routines playbook procedimientos procedimiento flujo proceso pasos 流程 步骤 اجراءات خطوات
    work: work job role team career company employer office trabajo empleo equipo empresa 工作 职位 团队 عمل وظيفة
    home: home house address residence family-home casa hogar domicilio vivienda 家 住址 منزل سكن
    travel: travel trips trip travels vacation viajes viaje 旅行 出差 سفر
    health: health medical fitness diet allergies salud dieta 健康 صحة
    people: people family friends contacts relationships colleagues personas familia amigos 家人 朋友 اشخاص عائلة
    data: data tables table datasets sources definitions definition glossary metrics schema datos tablas definiciones
        glosario 数据 口径 定义 指标 بيانات تعريفات
    projects: project projects proyecto proyectos 项目 مشاريع
    schedule: schedule calendar meetings times timezone agenda horario calendario 日程 会议 جدول مواعيد
    profile: profile identity person bio about me perfil identidad 个人 ملف
    notes: notes note misc other facts fact general memory memories notas 笔记 ملاحظات
"""


def _read_topics() -> dict[str, str]:
    found: dict[str, str] = {}
    for group in re.split(r"\n    (?=\S)", _TOPICS.strip("\n").removeprefix("    ")):
        name, _, words = group.partition(":")
        for word in words.split():
            found[stem(fold(word))] = name.strip()
    return found


_TOPIC_OF = _read_topics()
TOPIC_PATHS = tuple(f"/{name}.md" for name in dict.fromkeys(_TOPIC_OF.values()))
"""Where lines go that nothing else claims."""

_PATH = re.compile(r"(?<![\w:/.])/(?:[\w.-]+/)*[\w-]+(?:\.md\b|/(?![\w]))?")
_CATCH_ALL = re.compile(r"\b(?:everything|all|any|todo|toda|todos|todas)\b|全部|所有|一切|كل")
_SIMPLE = re.compile(r"/(?:[\w-]+/){0,3}[\w.-]+\.md")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a line goes."""

    path: str
    sure: bool  # whether something said so: the instructions, the layout or the topic


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The paths of an actor's memory."""

    instructed: tuple[tuple[str, frozenset[str], bool], ...]  # path, its topics and words, whether it takes everything
    entries: tuple[Entry, ...]

    def paths(self) -> tuple[str, ...]:
        """The paths that a model is offered: instructed ones, existing ones, then topics."""
        known = [path for path, _, _ in self.instructed] + [entry.path for entry in self.entries]
        return tuple(dict.fromkeys([*known, *(self._beside(path) for path in TOPIC_PATHS)]))

    def allows(self, path: str) -> bool:
        """Whether a model may name this path for a new line.

        Args:
            path: as the model wrote it.

        Returns:
            True for the offered paths, and for a plain new file in a folder that one of them is in.
        """
        offered = self.paths()
        if path in offered:
            return True
        folders = {one.rpartition("/")[0] for one in offered}
        return is_path(path) and bool(_SIMPLE.fullmatch(path)) and path.rpartition("/")[0] in folders

    def place(self, fact: Fact) -> Place:
        """Find the place of a fact that has no line.

        Args:
            fact: the fact.

        Returns:
            The path and whether it is sure.
        """
        topics = _topics_of(fact)
        told = self._instructed(fact, topics) or self._existing(fact, topics)
        if told:
            return Place(path=self.room(told, fact.text), sure=True)
        own = _own_path(fact.topic)
        path = own or (f"/{topics[0]}.md" if topics else DEFAULT_PATH)
        path = path if own and own.count("/") > 1 else self._beside(path)
        return Place(path=self.room(path, fact.text), sure=bool(topics))

    def room(self, path: str, text: str) -> str:
        """The path itself, or the same with a number where its entry would grow over the hard limit.

        Args:
            path: the wanted path.
            text: the line to add.

        Returns:
            A path with room for the line.
        """
        sizes = {entry.path: len(entry.content) for entry in self.entries}
        wanted, number = path, 1
        while sizes.get(wanted, 0) + len(text) + 16 > LONGEST_ENTRY and number < 1000:
            number += 1
            wanted = numbered(path, number)
        return wanted

    def _instructed(self, fact: Fact, topics: Sequence[str]) -> str | None:
        words = {*topics, *sense(fact.text).bag}
        best, most = None, 0
        for path, about, takes_all in self.instructed:
            hits = len(words & about) + (3 if topics and topics[0] in about else 0)
            if hits > most and (hits > 1 or len(about) <= 2):
                best, most = path, hits
            elif takes_all and best is None:
                best = path
        return best

    def _existing(self, fact: Fact, topics: Sequence[str]) -> str | None:
        own = _own_path(fact.topic)
        if own and any(entry.path == own for entry in self.entries):
            return own
        fitting = [entry for entry in self.entries if topics and topics[0] in path_topics(entry.path)]
        if fitting:
            return max(fitting, key=lambda entry: (_closest(fact, entry), -len(entry.content))).path
        near = [(score, entry.path) for entry in self.entries if (score := _closest(fact, entry)) >= _CLOSE]
        return max(near)[1] if near else None

    def _beside(self, path: str) -> str:
        """A topic file in the folder that all entries share, if there is one."""
        folders = {entry.path.rpartition("/")[0] for entry in self.entries}
        shared = next(iter(folders)) if len(folders) == 1 and len(self.entries) > 1 else ""
        return f"{shared}{path}"


def layout_of(entries: Sequence[Entry], *, instructions: str = "") -> Layout:
    """Read the layout of an actor's memory.

    Args:
        entries: of the actor.
        instructions: of the pipeline; paths in them, such as "keep preferences in /prefs/style.md", come first.

    Returns:
        The layout.
    """
    found: list[tuple[str, frozenset[str], bool]] = []
    for clause in re.split(r"[;\n。；]|(?<=[a-z)])\.\s|,\s(?=[^,]*?/)|\band\s(?=[^,]*?\s/)", instructions):
        for match in _PATH.finditer(clause):
            path = match[0]
            rest = _PATH.sub(" ", clause)
            path = f"{path}notes.md" if path.endswith("/") else path
            if is_path(path):
                about = frozenset({*sense(rest).bag, *_topics_in(rest), *path_topics(path)})
                found.append((path, about, bool(_CATCH_ALL.search(fold(rest)))))
    return Layout(instructed=tuple(found), entries=tuple(entries))


def is_path(path: str) -> bool:
    """Whether this can be the path of an entry.

    Args:
        path: any text.

    Returns:
        What `names.check_path` says of it.
    """
    try:
        check_path(path)
    except InvalidInputError:
        return False
    return True


def path_topics(path: str) -> frozenset[str]:
    """The topics that the words of a path name; a word that is no known topic is one of its own.

    Args:
        path: of an entry.

    Returns:
        Names of topics and stems of other words; numbers at the end do not count.
    """
    return _topics_in(path.removesuffix(".md"), others=True)


def numbered(path: str, number: int) -> str:
    """The path of a further part of an entry: `/work-2.md`.

    Args:
        path: of the first part, or of another.
        number: from 2.

    Returns:
        The path with the number.
    """
    base = re.sub(r"-\d{1,3}$", "", path.removesuffix(".md"))
    return f"{base}-{number}{'.md' if path.endswith('.md') else ''}"


def slug(text: str) -> str:
    """A word of a path: small letters, digits and hyphens, in any script.

    Args:
        text: a heading or topic.

    Returns:
        At most 40 characters; empty when nothing is left.
    """
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:40].rstrip("-")


def section_of(text: str, content: str) -> int | None:
    """The line of an entry after which a new one belongs.

    Args:
        text: of the new line.
        content: of the entry.

    Returns:
        Number of the last line of the section that the new line is closest to; None where the entry has no sections,
        or none is close.
    """
    lines = [line for line in read(content) if line.kind == "fact"]
    sections = {line.heading: line.number for line in lines}
    if len(sections) < 2:
        return None
    own = sense(text)
    near = {heading: likeness(own, sense(heading)) for heading in sections}
    for line in lines:
        near[line.heading] = max(near[line.heading], likeness(own, sense(line.text)))
    best = max(near, key=lambda heading: near[heading])
    return sections[best] if near[best] > 0 else None


def describe(path: str, content: str) -> str:
    """A short description of an entry: its topic and how it begins.

    Args:
        path: of the entry.
        content: of the entry.

    Returns:
        One line of at most about 100 characters.
    """
    title = re.sub(r"[-_]+", " ", path.rpartition("/")[2].removesuffix(".md")).strip().capitalize()
    first = next((line.text for line in read(content) if line.kind != "other"), "")
    if len(first) > 70:
        first = first[:70].rsplit(" ", 1)[0] + "…"
    return f"{title}: {first}" if first else title


def topic_of(text: str) -> str | None:
    """The topic that the words of a line name, if they name one.

    Args:
        text: a line.

    Returns:
        A known topic, or None.
    """
    counts: dict[str, int] = {}
    for word in re.findall(r"\w+", fold(text)):
        name = _TOPIC_OF.get(stem(word))
        if name and name != "notes":
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else None


def _topics_in(text: str, *, others: bool = False) -> frozenset[str]:
    stems = [stem(word) for word in re.findall(r"[^\W\d_]+", fold(text))]
    return frozenset(
        name for word in stems if (name := _TOPIC_OF.get(word) or (word if others and len(word) > 1 else None))
    )


def _topics_of(fact: Fact) -> tuple[str, ...]:
    """The topics of a fact, the closest first."""
    named = fact.topic.removesuffix(".md").rpartition("/")[2]
    found = [name for word in re.findall(r"[^\W\d_]+", fold(named)) if (name := _TOPIC_OF.get(stem(word)))]
    if not found and slug(named):
        found = [slug(named)]
    by_kind = {"preference": "preferences", "procedure": "procedures"}.get(fact.kind)
    return tuple(dict.fromkeys([*found, *([by_kind] if by_kind else [])]))


def _own_path(topic: str) -> str | None:
    """The path that a fact's topic is, if it is one."""
    if "/" not in topic:
        return None
    path = "/" + topic.strip().strip("/").removesuffix(".md") + ".md"
    return path if is_path(path) and _SIMPLE.fullmatch(path) else None


def _closest(fact: Fact, entry: Entry) -> float:
    own = sense(fact.text)
    return max((likeness(own, sense(line.text)) for line in read(entry.content) if line.kind != "other"), default=0.0)
