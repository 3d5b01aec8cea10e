"""Texts of any script find texts of their topic, without any option.

The sentences were made up for this test: four topics in Chinese, and three topics in a
mix of six languages with as many scripts, of which Thai and Japanese write no spaces.
"""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from linkspread.features import TextFeatures
from linkspread.graphs import nearest_neighbors

CHINESE = {
    "weather": """明天北京会下大雨，气温下降。
今天天气晴朗，最高气温三十度。
台风即将登陆，沿海地区有暴雨。
北方冷空气南下，气温明显下降。
昨晚下了一场大雪，路面结冰。
天气预报说周末有雷阵雨。
今年冬天特别冷，经常下雪。
南方持续高温，气温超过四十度。
早晨有大雾，能见度很低。
春天多风，气温变化很大。
暴雨过后，天气终于晴朗了。
气象台发布了台风和暴雨预警。
夏天的雷阵雨来得快去得也快。
冷空气带来大风和降雪天气。
明天多云转晴，气温回升。""",
    "football": """主队在足球比赛中以三比一获胜。
前锋在最后一分钟射门得分。
这场足球比赛吸引了五万名球迷。
守门员扑出了对手的点球。
球队教练对比赛结果表示满意。
世界杯足球赛将于六月开幕。
裁判向后卫出示了红牌。
球迷们为自己的球队欢呼。
年轻前锋转会到另一支球队。
球队在决赛中点球获胜。
中场球员受伤，缺席下一场比赛。
教练在下半场换上了新前锋。
守门员的失误让对手得分。
联赛冠军球队回到主场庆祝。
裁判判罚点球，球员们抗议。""",
    "cooking": """锅里放油，把葱姜炒香。
牛肉切成小块，用酱油腌半小时。
面粉加水揉成面团，静置一会儿。
西红柿炒鸡蛋是简单的家常菜。
把豆腐切块，放入锅里煮。
加一勺盐和少许糖调味。
饺子下锅，水开后再煮五分钟。
鸡肉切丁，和花生一起炒。
这道汤要用小火慢慢炖。
米饭煮好以后，加入鸡蛋翻炒。
用酱油、醋和糖做成酱汁。
把蔬菜洗净切好，放油爆炒。
鱼要先腌，再放葱姜蒸十分钟。
包饺子的面团要揉得光滑。
汤里加盐，再放豆腐和蔬菜。""",
    "medicine": """医生建议病人每天按时吃药。
护士给病人量了体温和血压。
感冒的症状是发烧和咳嗽。
医院新建了一座手术楼。
这种药物可以降低血压。
病人手术后恢复得很好。
医生说他得了肺炎，需要住院。
疫苗能够预防流感和肺炎。
高血压患者应当少吃盐，多运动。
发烧的孩子被送到医院急诊。
研究人员正在试验新的药物治疗癌症。
护士每天为住院的病人打针。
咳嗽两周以上应该去医院检查。
糖尿病患者需要长期药物治疗。
医生为患者做了心脏手术。""",
}
MIX = {
    "weather": """Heavy rain and strong wind are expected tomorrow.
The wind brought cold weather and snow.
Cold rain turned to snow in the evening.
Tomorrow the weather will be sunny without wind.
Завтра ожидается сильный дождь и холодный ветер.
Ночью был снег, а утром пошёл дождь.
Сильный ветер и снег закрыли дорогу.
Утром холодный туман, завтра солнце и ветер.
الطقس غدا بارد مع مطر غزير
رياح قوية و مطر في الشمال
الطقس مشمس اليوم و رياح خفيفة
ثلج و رياح قوية على الجبال، الطقس بارد
कल तेज़ बारिश और ठंडी हवा चलेगी।
पहाड़ों पर बर्फ और ठंडी हवा है।
आज मौसम साफ है, कल बारिश होगी।
तेज़ हवा के साथ मौसम बदल गया, बारिश आई।
พรุ่งนี้ฝนตกหนักและลมแรง
อากาศหนาวและลมแรงทางภาคเหนือ
วันนี้อากาศร้อนแต่พรุ่งนี้ฝนตก
ฝนตกหนักทำให้อากาศเย็นลง
明日は大雨で風が強いでしょう。
北海道では雪が降り、気温が下がった。
台風が近づき、大雨と強い風に注意。
明日の天気は晴れ、気温が上がる。""",
    "football": """The team won the match with a late goal.
The goalkeeper saved a penalty in the final match.
Fans of the team celebrated the goal.
The coach praised the goalkeeper and the team.
Команда выиграла матч, забив гол в конце.
Вратарь отбил пенальти, и команда победила.
Тренер доволен: матч закончился победой, вратарь не пропустил гол.
Судья назначил пенальти, матч продолжился.
فاز الفريق في المباراة بعد هدف متأخر
سجل اللاعب هدف الفوز في المباراة
حارس المرمى أنقذ الفريق من هدف
المدرب سعيد بعد فوز الفريق في المباراة
टीम ने आखिरी गोल से मैच जीता।
गोलकीपर ने पेनल्टी बचाई और टीम जीती।
खिलाड़ी ने मैच में दो गोल किए।
कोच ने टीम के खिलाड़ी की तारीफ की।
ทีมชนะการแข่งขันด้วยประตูสุดท้าย
ผู้รักษาประตูเซฟลูกจุดโทษ
นักเตะยิงประตูให้ทีมชนะ
การแข่งขันฟุตบอลจบลงทีมเสมอ
サッカーの試合でチームが勝った。
選手がゴールを決めて試合に勝った。
ゴールキーパーがチームを救った。
監督はサッカー選手をほめた。""",
    "cooking": """Fry the onions in oil and add salt.
Boil the rice and add salt and butter.
Mix flour with butter, sugar and eggs.
Fry the eggs in butter or oil.
Обжарьте лук на масле и добавьте соль.
Сварите рис, добавьте соль и масло.
Смешайте муку, сахар и яйца.
Добавьте лук и яйца в суп.
يقلى البصل في الزيت مع الملح
يطبخ الأرز مع الملح و الزيت
نخلط الدقيق مع السكر و البيض
نضيف البصل و البيض إلى الأرز
प्याज को तेल में भूनें और नमक डालें।
चावल उबालें और नमक डालें।
आटा, चीनी और अंडे मिलाएँ।
तेल में अंडे और प्याज भूनें।
ผัดหัวหอมในน้ำมันแล้วใส่เกลือ
ต้มข้าวแล้วใส่เกลือและไข่
ผสมแป้งกับน้ำตาลและไข่
ใส่น้ำมันในกระทะแล้วทอดไข่
玉ねぎを油で炒めて塩を加える。
鍋でご飯を炊いて塩を加える。
小麦粉と砂糖と卵を混ぜる。
卵を油で炒めてご飯に混ぜる。""",
}
COLLECTIONS = {"Chinese": CHINESE, "mix": MIX}


def read(collection):
    """Return the sentences of a collection and the topic of each."""
    by_topic = [lines.splitlines() for lines in collection.values()]
    topics = np.repeat(np.arange(len(by_topic)), [len(part) for part in by_topic])
    return [text for part in by_topic for text in part], topics


def accuracy(X, topics, metric):
    """Return how often the nearest other text is of the same topic."""
    nearest = nearest_neighbors(X, n_neighbors=1, metric=metric)[0][:, 0]
    return np.mean(topics[nearest] == topics)


@pytest.mark.parametrize(
    ("name", "least", "gain"), [("Chinese", 0.9, 0.6), ("mix", 0.95, 0.2)]
)
def test_the_nearest_text_is_of_the_same_topic(name, least, gain):
    texts, topics = read(COLLECTIONS[name])
    chance = 1 / len(COLLECTIONS[name])
    features = TextFeatures()
    found = accuracy(features.fit_transform(texts), topics, features.metric_)
    between_spaces = TfidfVectorizer(analyzer=str.split, sublinear_tf=True)
    rival = accuracy(between_spaces.fit_transform(texts), topics, "cosine")
    assert found >= least > 2 * chance
    assert found >= rival + gain


@pytest.mark.parametrize("language", range(6))
def test_each_language_of_the_mix_does_its_part(language):
    texts, topics = read(MIX)
    features = TextFeatures()
    X = features.fit_transform(texts)
    nearest = nearest_neighbors(X, n_neighbors=1, metric=features.metric_)[0][:, 0]
    own = np.arange(len(texts)) % 24 // 4 == language
    assert np.mean(topics[nearest[own]] == topics[own]) >= 0.9


def test_a_new_chinese_text_finds_its_topic():
    texts, topics = read(CHINESE)
    features = TextFeatures().fit(texts)
    queries = ["下雪天气温低", "足球教练批评裁判", "豆腐炒鸡蛋", "医院的医生和护士"]
    nearest, _ = nearest_neighbors(
        features.transform(texts),
        features.transform(queries),
        n_neighbors=3,
        metric=features.metric_,
    )
    assert (topics[nearest] == np.arange(4)[:, np.newaxis]).all()
