"""Words that carry no topic, that turn a statement round, or that stand for numbers and days, by language.

Folded as `similarity` folds: one case, no accents, no Arabic vowel marks.
"""

import re

_STOP = """
    a about after again all also always am an and any anyone anything are as ask asked at be because been before being
    both but by can could did do does doing done during each either else ever every everyone everything few for from
    further get gets give given go going good got had has have having he hello her here hers him his how however hi i
    if in into is it its just keep kindly know let like likes liked look made make makes many may me mine more most
    much must my need needs new note of off often on once one ones only or other others our ours out over own please
    prefer prefers preferred preference rather really remember said same say see send set shall she should show so some
    something still stick such sure take tell than thank thanks that the their them then there these they thing think
    this those though time times to too under until up us use used uses user using usually very want wants wanted was
    we well were what when whenever where which while who whom why will wish with would write wrote yes you your yours
    forget ok okay ll ve re im id love loves loved enjoy enjoys instead correction
    al algo alguna alguno ante antes aqui asi aun aunque cada casi como con cosa cual cuando cuanto cuenta de del desde
    donde dos durante e el ella ellas ellos en entre era eran eres es esa esas ese eso esos esta estas este esto estos
    estoy favor fue fueron gusta gustaria ha haber han hasta hay hola la las le les lo los mas me mi mis mismo mucho
    muy nos nosotros o os otra otras otro otros para pero por porque prefiero prefiere pon ponme pues puede puedes que
    quiero quiere quien se sea segun ser si siempre sobre solo son soy su sus suyo tal tambien tan tanto te
    tener tengo ti tiene todo toda todos todas tu tus un una unas uno unos usa usar uso usted usuario vale ya yo y
    gracias necesito gustan encanta encantan corrijo corregir correccion menos
    ال الذي التي الى إلى على عن في من مع هذا هذه ذلك تلك هو هي هم انا نحن انت كان كانت يكون تكون ان او ثم كل بعد قبل
    عند عندما عندنا لدي لدينا كما ما ماذا هل قد لقد دائما فضلك رجاء افضل احب اريد استخدم يرجى المستخدم شكرا نعم اذا
    ايضا يا لان به بها له لها لي فيه فيها اكثر جدا مرحبا
"""

STOP = frozenset(_STOP.split())

_CJK_STOP = """
    我们 你们 他们 她们 自己 用户 希望 喜欢 比较 更喜欢 偏好 请 一律 总是 一直 都 要 用 使用 的 了 着 过 在 是 有
    和 与 及 或 把 被 给 对 对于 就 也 还 很 非常 这 那 这个 那个 这些 那些 什么 怎么 因为 所以 如果 时候 以后
    更正 纠正 今后 从今以后 我 你 您 他 她 它 里 上面 里面 之后 之前 现在 已经 可以 应该 需要 想 让 跟 来 去 吧 呢
    啊 吗 先 再 最后 并且 并 爱 です ます は が を に で と の も へ から まで して する ください 私 この その
"""

CJK_STOP = re.compile("|".join(sorted(_CJK_STOP.split(), key=len, reverse=True)))

_NEGATORS = """
    not no never none nobody nothing neither nor without cannot hate hates hated dislike dislikes disliked avoid avoids
    stop stops stopped quit except
    nunca jamas nada nadie ninguno ninguna ningun sin tampoco odia odio odiaba detesto evita evitar evito deja dejar
    لا لن لم ليس ليست لست بدون غير ابدا اكره تجنب
"""

NEGATORS = frozenset(_NEGATORS.split())

CJK_NEGATORS = re.compile("不要|不用|不能|不会|不喜欢|不|没有|没|别|勿|讨厌|避免|无需|ません|ない|嫌い")

# What follows is said to hold no longer, up to the end of the clause. Read on folded text.
REJECTIONS = tuple(
    re.compile(
        pattern.format(
            latin=r"(?:[^,;.!?]|\.(?=\w))", arabic=r"(?:[^،؛.!؟]|\.(?=\w))", han=r"(?:[^，,；;。.!！?？]|\.(?=\w))"
        )
    )
    for pattern in (
        r"(?:,|;|:|\band|\bbut)\s*not\b(?P<off>{latin}{{0,80}})",
        r"\bnot\b(?P<off>{latin}{{0,80}}?)(?=,?\s*\bbut\b)",
        r"\b(?:instead of|rather than|in place of|no longer|not any ?more)\b(?P<off>{latin}{{0,80}})",
        r"\b(?:moved?|moving|changed?|switch(?:ed)?|migrated?|went|transferred)\s{latin}{{0,80}}?\bfrom\b"
        r"(?P<off>{latin}{{0,80}}?)\bto\b",
        r"(?:,|;|:|\by|\bpero|\bsino)\s*no\b(?P<off>{latin}{{0,80}})",
        r"\b(?:en vez de|en lugar de|nada de|ya no)\b(?P<off>{latin}{{0,80}})",
        r"\b(?:mud\w*|cambi\w*|trasla\w*|pase|paso|pasamos)\s{latin}{{0,80}}?\bde\b(?P<off>{latin}{{0,80}}?)\ba\b",
        r"(?:而不是|而非|不再是?|不要再|代替)(?P<off>{han}{{0,80}})",
        r"[，,；;]\s*(?:不要用?|不用|别用?|不是)(?P<off>{han}{{0,80}})",
        r"[从由](?P<off>{han}{{0,80}}?)(?:搬|换|转|改|调|迁)",
        r"\bوليس(?:ت)?\b(?P<off>{arabic}{{0,80}})",
        r"\b(?:بدلا من|عوضا عن|لم اعد|لم يعد)\b(?P<off>{arabic}{{0,80}})",
        r"\b(?:انتقل|غير|تحول)\w*\s{arabic}{{0,80}}?\bمن\b(?P<off>{arabic}{{0,80}}?)\bالي\b",
    )
)

# Taken out with what it turns down, so that it does not count as a negation.
TURNS = re.compile(
    r"\b(?:not|no|instead of|rather than|in place of|no longer|not any ?more|en vez de|en lugar de|nada de|ya no"
    r"|وليست?|بدلا من|عوضا عن|لم اعد|لم يعد)\b|不要再|不再是?|而不是|而非|不要用?|不用|别用?|不是|代替"
)

# Says that what follows takes the place of something.
CHANGES = re.compile(
    r"\b(?:from (?:now|today|tomorrow|this week|next week) on(?:wards?)?|as of now|starting (?:now|today)"
    r"|switch(?:ed)? to|changed? (?:my mind|to)|moved to|no longer|any ?more|instead|correction|actually"
    r"|a partir de (?:ahora|hoy)|desde ahora|de ahora en adelante|corrijo|correccion|en realidad|ya no|me mude"
    r"|من الان فصاعدا|بعد الان|لم اعد|بدلا|تصحيح|انتقلت)\b"
    r"|从今以后|从现在起|今后|以后|改用|改成|改为|换成|不再|更正|纠正|搬到"
)

# Ends what a sentence says it does: it holds no longer, or only held once.
PAST = re.compile(r"\b(?:used to|formerly|solia|antes(?! de))\b|以前(?=[我用是住在])|曾经|سابقا")

FILLERS = re.compile(
    r"^\W*(?:no|لا|不对|不是|不)\s*[,،，.:]"
    r"|\b(?:(?:do not|don't|never) forget(?: that)?|no (?:te )?olvides que|not only|no solo)\b|别忘了?|不要忘记"
)

_NUMBERS = """
    2 two dos twice مرتين
    3 three tres ثلاثة ثلاث
    4 four cuatro اربعة اربع
    5 five cinco خمسة خمس
    6 six seis ستة ست
    7 seven siete سبعة سبع
    8 eight ocho ثمانية ثمان
    9 nine nueve تسعة تسع
    10 ten diez عشرة عشر
    11 eleven
    12 twelve doce
    15 fifteen quince
    20 twenty veinte
    30 thirty treinta
    60 sixty sesenta
    90 ninety noventa
    100 hundred cien
    1000 thousand mil
    0.5 half
"""

NUMBERS = {word: line.split()[0] for line in _NUMBERS.strip().splitlines() for word in line.split()[1:]}

CJK_NUMBER = re.compile(r"(?<!周)(?<!星期)([一二两三四五六七八九十]+)(?=[个天小分次点年月日周万千张条行人岁种倍])")
CJK_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2}

_DAYS = """
    weekday-1 monday mondays lunes الاثنين
    weekday-2 tuesday tuesdays martes الثلاثاء
    weekday-3 wednesday wednesdays miercoles الاربعاء
    weekday-4 thursday thursdays jueves الخميس
    weekday-5 friday fridays viernes الجمعة
    weekday-6 saturday saturdays sabado sabados السبت
    weekday-7 sunday sundays domingo domingos الاحد
    month-1 january enero يناير
    month-2 february febrero فبراير
    month-3 marzo مارس
    month-4 april abril ابريل
    month-5 mayo مايو
    month-6 june junio يونيو
    month-7 july julio يوليو
    month-8 august agosto اغسطس
    month-9 september septiembre سبتمبر
    month-10 october octubre اكتوبر
    month-11 november noviembre نوفمبر
    month-12 december diciembre ديسمبر
"""
# March and May are ordinary English words too.

DAYS = {word: line.split()[0] for line in _DAYS.strip().splitlines() for word in line.split()[1:]}

CJK_DAY = re.compile(r"(?:周|星期|礼拜)([一二三四五六日天])")

_TIME = """
    now today yesterday tomorrow tonight last next ago currently lately recently
    ahora hoy ayer pasado pasada proximo proxima actualmente
    اليوم امس غدا الان الماضي الماضية القادم
"""

TIME = frozenset(_TIME.split())
"""When something was said or began: no topic."""

# Where a sentence may be taken apart: what follows stands for itself.
JOINTS = re.compile(
    r"[;；؛]\s*|[,،，]?\s+(?:and|but)\s+(?=i\b|my\b|we\b|our\b|please\b)|[,，]\s*(?:y|pero)\s+(?=\w)"
    r"|[，,]\s*(?:并且|而且|另外)|[،,]\s*(?=و)",
    re.IGNORECASE,
)

# A clause that begins so hangs on what was said before it.
DEPENDENT = re.compile(
    r"\W*(?:so|therefore|that|which|because|then|asi|entonces|por eso|porque|所以|因此|于是|لذلك|لان)\b", re.IGNORECASE
)
