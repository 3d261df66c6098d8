"""Tells by its wording what must not become memory: instructions to a machine, and values that are true only now.

Fixed lists for the languages named beside them. They are a net under the search for evidence, not a wall by themselves,
and lean towards letting through what a person may well say of their own work.
"""

import re

from memory_pipelines.wording import fold

REDACTED = "[redacted"
"""How text begins that stands for a secret."""

# All patterns are matched against folded text: lower case, no accents, one space, Arabic letters unified.

_INSTRUCTIONS = (
    # English
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,25}\b(?:previous|prior|above|earlier|preceding|existing|your)\b"
    r".{0,20}\b(?:instructions?|messages?|rules?|prompts?|directions?|guidelines|context)\b",
    r"\b(?:ignore|disregard|forget) (?:everything|all) (?:above|before|so far|previous|you)\b",
    r"\bnote (?:to|for) (?:(?:the|any|all|future|whatever) )*"
    r"(?:memory|memories|summari[sz]ers?|llms?|ai|language models?|models?|assistants?)\b",
    r"\b(?:delete|erase|wipe|remove|purge|clear|overwrite) (?:all|every|any|the|your|these|this)\b.{0,20}"
    r"\bmemor(?:y|ies)\b(?! (?:cache|leak|card))",
    r"\b(?:write|save|store|add|copy|put)\b.{0,60}(?:\b(?:to|for|into|of) (?:actor|tenant) \S|\bactor_?id\b)",
    r"\byou (?:are|must) now (?:an?|in|the|act|obey|ignore|operate)\b",
    r"\b(?:your|the) (?:system|hidden|developer) (?:prompt|message|instructions?)\b|\bsystem override\b",
    r"\bnew instructions?\s*:",
    r"(?:^|[.!?\]] )[\[<(#* ]*(?:system|developer|sistema|systeme)(?: message| note| prompt)?[\])>*]*\s*:\s*\S",
    r"</?\s*(?:system|im_start|im_end)\b|\[/?inst\]|<\|[a-z_]+\|>",
    # Spanish, Portuguese, French, German
    r"\b(?:ignora|ignorar|ignore|ignorez|olvida|olvide|descarta|desconsidere|esqueca|oublie|oubliez|ignoriere|vergiss)\b"
    r".{0,30}\b(?:instruccion(?:es)?|indicacion(?:es)?|instrucoes|consignes|instructions|anweisung(?:en)?)\b",
    r"\b(?:olvida|olvide|ignora) todo lo anterior\b|\besqueca tudo\b|\bvergiss alles\b|\boublie[z]? tout ce qui\b",
    r"\b(?:borra|borre|elimina|elimine|apaga|apague|supprime|supprimez|efface|effacez|losche|loschen)\b "
    r"(?:tod[oa]s|toutes|tous|alle|la|le|as|los|las|tu|su)\b.{0,20}(?:memoria|recuerdo|memoire|souvenir|erinnerung)",
    r"\b(?:nota|note|hinweis) (?:para|pour|fur) (?:\w\w\w? )?(?:memoria|modelo|ia|memoire|modele|ki)\b",
    r"\b(?:ahora eres|eres ahora|agora voce e|tu es maintenant|vous etes maintenant|du bist jetzt) (?:un|um|ein|en)",
    # Chinese
    r"(?:忽略|无视|忘记|忘掉|不要理会).{0,10}(?:之前|以上|上面|先前|前面|所有|全部|系统).{0,8}(?:指令|指示|提示|规则|要求)",
    r"(?:删除|清空|清除|抹掉).{0,10}(?:记忆|回忆)|(?:给|致).{0,6}记忆.{0,8}(?:备注|说明|提示|程序|助手|系统)",
    r"(?:^|[。!?] ?)[\[【(]?系统(?:消息|提示)?[\]】)]?\s*:|你现在是一|系统提示词",
    # Arabic
    r"(?:تجاهل|انس|اهمل) .{0,20}(?:التعليمات|الاوامر|التوجيهات|ما سبق)",
    r"(?:احذف|امسح|امح) .{0,20}(?:الذكريات|الذاكره|ذاكره)|ملاحظه (?:الي|ل)\s?.{0,12}(?:الذاكره|النموذج)",
    r"(?:^|[.!؟] )\[?(?:النظام|نظام)\]?\s*:|انت الان (?:في|نظام|مساعد)",
)
_INSTRUCTION = re.compile("|".join(f"(?:{pattern})" for pattern in _INSTRUCTIONS))


def _any(*patterns: str) -> re.Pattern[str]:
    """Match any of the alternatives as whole words; in Chinese, which has no spaces, anywhere."""
    alternatives = [one for pattern in patterns for one in pattern.split("|")]
    spaced = "|".join(one for one in alternatives if not _CHINESE.search(one))
    return re.compile("|".join([rf"(?<!\w)(?:{spaced})(?!\w)", *filter(_CHINESE.search, alternatives)]))


_CHINESE = re.compile("[\u4e00-\u9fff]")

_NOW_STRONG = _any(
    "right now|at the moment|at this moment|at this very moment|as of now|as we speak",
    "ahora mismo|en este momento|en este instante|en estos momentos",
    "此刻|这会儿|这一刻",
    "في هذه اللحظه|حاليا",
)
_NOW = _any("now|currently", "ahora|actualmente", "现在|目前|当前|眼下", "الان")
_TODAY = _any("today|tonight|this morning", "hoy|esta manana", "今天|今晚", "اليوم")
_TELLS = _any(
    "shows|reads|stands at|is at|are at|there are", "muestra|hay|esta a|estan a", "显示|共有", "يظهر|هناك|يوجد"
)
_BAD_OR_BUSY = _any(
    "is down|are down|failing|is stuck|is red|is green|is healthy|debugging|rebooting|deploying|restarting",
    "esta caido|esta caida|fallando|en rojo|depurando",
    "挂了|报错|正在调试",
    "متوقف|معطل",
)
_THINGS = (
    "rows?|records?|tickets?|jobs?|errors?|users online|requests?|messages|events|clicks?|alerts?|percent|ms|gb|mb|"
    "degrees|filas|registros|errores|usuarios conectados|peticiones|mensajes|clics|alertas|grados|"
    "صفوف|صف|سجل|سجلات|تذكره|تذاكر|طلب|طلبات|خطا|اخطاء|نقره|نقرات|درجه"
)
_COUNT = re.compile(
    rf"(?<![\d.,])\d[\d.,]{{0,20}} ?(?:(?:{_THINGS})(?!\w)|[%°]|行|条|张|件|个任务|个用户|个请求|个错误|次|度)"
    r"|(?<!\w)(?:lag|latency|queue|cpu|uptime|latencia|cola)(?!\w).{0,20}\d"
)
_PRICE = _any(
    "price|rate|stock|share|balance|temperature|weather|forecast|score|dollar|euro|bitcoin|btc|diesel|petrol|gold",
    "precio|cotizacion|cambio|saldo|temperatura|dolar|gasolina",
    "价|汇率|余额|温度|气温",
    "سعر|رصيد|حراره|الحراره|الدولار|اليورو",
)
_IS_NUMBER = re.compile(r"(?<!\w)(?:is|are|es|esta|هو|هي)\s[^\d\s]?\d|(?:是|为)\s?\d")
_OWN = _any("i|my|our|we", "mi|mis|nuestro|nuestra", "我|我们", "سعري|لدينا|عندنا")
_RULE = _any(
    "means?|defined|counts? as|if|when|whenever|more than|less than|always|never|rule|threshold|prefer",
    "significa|siempre|nunca|cuando|mas de|menos de|prefiero",
    "是指|如果|一律|超过|以后|算",
    "يعني|دائما|اكثر من|اقل من",
)
_NUMBER = re.compile(r"\d")


def looks_like_instruction(text: str) -> bool:
    """Say whether a text speaks to the machine that reads it instead of about the person."""
    return _INSTRUCTION.search(fold(text).text) is not None


def is_live_value(text: str) -> bool:
    """Say whether a sentence states a reading, count, price or state of affairs of the moment.

    "There are 1,204 rows right now" is one; "a breach means more than 30 minutes above 7 degrees" is not.
    """
    folded = fold(text).text
    numbered = _NUMBER.search(folded) is not None
    strong, now, today = (one.search(folded) is not None for one in (_NOW_STRONG, _NOW, _TODAY))
    if strong and (numbered or _BAD_OR_BUSY.search(folded)):
        return True
    if _RULE.search(folded):
        return False
    if now and _BAD_OR_BUSY.search(folded):
        return True
    if not numbered:
        return False
    told = now or today or _TELLS.search(folded) is not None
    if _COUNT.search(folded):
        return told
    return bool(_PRICE.search(folded)) and (told or _IS_NUMBER.search(folded) is not None) and not _OWN.search(folded)
