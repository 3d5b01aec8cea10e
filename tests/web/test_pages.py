"""The pages show what the library says, and keep what people say."""

import json
import re
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

import linkspread as ls
from linkspread.web import Settings, create_app
from web_sites import (
    PAIRS,
    ROOT,
    fit_model,
    fit_search,
    form_token,
    found_ids,
    hidden,
    make_data,
    make_features,
    save_model,
)

ASK = {"source": "text", "target": "image", "item": "t5"}


@pytest.fixture(scope="module", params=[fit_search, fit_model])
def fitted(request):
    return request.param()


@pytest.fixture
def browser(tmp_path, fitted):
    """Return a client of pages with a store of their own."""
    (tmp_path / "pictures").mkdir()
    (tmp_path / "uploads").mkdir()
    app = create_app(
        save_model(fitted, tmp_path / "model"),
        features=make_features(tmp_path / "pictures"),
        settings=Settings(title="Colours", uploads=str(tmp_path / "uploads")),
    )
    # Not entered: without its thread, the model follows the store within a request.
    yield TestClient(app, base_url=ROOT)
    app.state.site.stop()


@pytest.fixture
def bare(tmp_path, fitted):
    """Return a client for a model of which only the ids are known."""
    app = create_app(save_model(fitted, tmp_path / "bare"))
    yield TestClient(app, base_url=ROOT)
    app.state.site.stop()


def site_of(browser):
    return browser.app.state.site


def post(browser, url, page, **fields):
    """Send a form of a page."""
    given = {"form_token": form_token(page), "key": hidden(page, "key")}
    return browser.post(url, data=given | fields)


def search(browser, **more):
    return browser.get("/", params=ASK | more).text


def test_the_first_page_offers_items_to_begin_with(browser):
    page = browser.get("/")
    assert page.status_code == 200
    # A wall of pictures; each searches by itself.
    assert page.text.count("<img") == 24
    assert "source=image&amp;target=text&amp;item=i0" in page.text
    assert "<script>" not in page.text
    assert "style=" not in page.text


def test_results_are_those_of_the_library(browser, fitted):
    ids, scores = fitted.search("t5", source="text", target="image", n_results=24)
    page = search(browser)
    assert found_ids(page) == ids.tolist()
    assert f"{scores[0]:.3g}" in page
    assert "/picture?view=image&amp;id=i" in page
    assert make_data()[0][5] in page


def test_pages_follow_each_other_without_a_script(browser, fitted):
    ids, _ = fitted.search("t5", source="text", target="image", n_results=50)
    found, url, n_pages = [], f"/?{urlencode(ASK)}", 0
    while url:
        page = browser.get(url).text
        found += found_ids(page)
        link = re.search(r'id="more" href="([^"]*)"', page)
        url, n_pages = link and link[1].replace("&amp;", "&"), n_pages + 1
    assert (found, n_pages) == (ids.tolist(), 3)


def test_a_part_has_only_the_results(browser):
    part = search(browser, part=1)
    assert "<html" not in part
    assert found_ids(part) == found_ids(search(browser))


def test_words_search_through_the_features(browser, fitted):
    from web_sites import transform

    rows = transform("text", ["a green thing"])
    ids, _ = fitted.search(rows, source="text", target="image", n_results=24)
    page = browser.get("/", params={"q": "a green thing"}).text
    assert found_ids(page) == ids[0].tolist()
    assert 'name="must"' in page


def test_the_title_of_an_item_is_that_item(browser):
    page = browser.get("/", params={"q": make_data()[0][5].upper()}).text
    assert found_ids(page) == found_ids(search(browser))
    assert 'name="must"' in page


def test_words_offer_items_that_have_them(browser):
    page = browser.get("/", params={"q": "number 17"}).text
    assert "item=t17" in page


def test_items_without_contents_show_their_ids(bare, fitted):
    ids, _ = fitted.search("t5", source="text", target="image", n_results=24)
    page = search(bare)
    assert found_ids(page) == ids.tolist()
    assert f'<span class="text">{ids[0]}</span>' in page
    assert "<img" not in page
    assert "t17" in bare.get("/", params={"q": "t17"}).text
    assert "No item of text has this name" in bare.get("/", params={"q": "zzz"}).text


def test_a_judgement_is_kept_before_the_answer_and_reranks(browser, fitted):
    page = search(browser)
    shown = found_ids(page)
    site, stored = site_of(browser), []
    catch_up = site.live.catch_up
    site.live.catch_up = lambda **how: (
        stored.append(site.live.store.count()) or (catch_up(**how))
    )
    answer = post(browser, f"/?{urlencode(ASK)}", page, cannot=shown[0],
                  seen="\n".join(shown))  # fmt: skip
    assert stored == [1]
    told = fitted.snapshot()
    link = [("t5", shown[0], -1.0)]
    told.add_links(ls.Links.from_pairs(link, between=("text", "image")))
    wanted = told.search("t5", source="text", target="image", n_results=24)[0]
    assert found_ids(answer.text) == wanted.tolist()
    assert found_ids(answer.text) != shown
    moved = re.findall(r'data-id="([^"]*)"[^>]*>(?:(?!</li>).)*?class="was">was (\d+)',
                       answer.text, re.S)  # fmt: skip
    ranks = {id: rank for rank, id in enumerate(shown, start=1)}
    assert moved
    assert [(id, int(rank)) for id, rank in moved] == [
        (id, ranks[id])
        for rank, id in enumerate(wanted.tolist(), start=1)
        if ranks.get(id, rank) != rank
    ]
    assert "does not belong" in answer.text


def test_sending_a_form_twice_is_one_judgement(browser):
    page = search(browser)
    for _ in range(2):
        post(browser, f"/?{urlencode(ASK)}", page, must="i3")
    store = site_of(browser).live.store
    assert store.count(active_only=False) == 1
    judgement = next(store.judgements())
    assert (judgement.left_id, judgement.right_id) == ("t5", "i3")


def test_undo_brings_the_list_back(browser):
    page = search(browser)
    after = post(browser, f"/?{urlencode(ASK)}", page, must="i40").text
    assert found_ids(after) != found_ids(page)
    id = re.search(r'name="undo" value="([^"]*)"', after)[1]
    back = post(browser, f"/?{urlencode(ASK)}", after, undo=id).text
    assert found_ids(back) == found_ids(page)
    assert site_of(browser).live.store.count() == 0


def test_my_word_and_those_of_others_are_on_the_card(browser):
    page = search(browser)
    shown = found_ids(page)[0]
    body = {"who": "bob", "source": "text", "source_id": "t5", "target": "image"}
    browser.post("/api/judgements", json=body | {"target_id": shown, "verdict": "must"})
    post(browser, f"/?{urlencode(ASK)}", page, unsure=shown)
    page = search(browser)
    assert "bob: belongs" in page
    assert re.search(rf'name="unsure" value="{shown}" aria-pressed="true"', page)


def test_names_are_kept_and_stand_with_judgements(browser):
    page = search(browser)
    browser.post("/name", data={"form_token": form_token(page), "name": " Ann\tB "})
    page = search(browser)
    assert "You are <b>Ann B</b>" in page
    post(browser, f"/?{urlencode(ASK)}", page, must="i3")
    assert next(site_of(browser).live.store.judgements()).who == "Ann B"


def test_history_lists_and_undoes_anything(browser):
    page = search(browser)
    post(browser, f"/?{urlencode(ASK)}", page, must="i3")
    history = browser.get("/history").text
    assert make_data()[0][5] in history
    id = re.search(r'name="undo" value="([^"]*)"', history)[1]
    answer = post_plain(browser, "/history", history, undo=id)
    assert answer.status_code == 200
    assert "taken back" in answer.text
    assert site_of(browser).live.store.count() == 0


def post_plain(browser, url, page, **fields):
    return browser.post(url, data={"form_token": form_token(page)} | fields)


def test_history_has_pages(browser):
    page = search(browser)
    store = site_of(browser).live.store
    from linkspread.storage import Judgement

    pair = dict(left_view="text", left_id="t1", right_view="image", right_id="i1")
    store.add_many([Judgement(who="ann", verdict="must", **pair) for _ in range(60)])
    first = browser.get("/history").text
    older = re.search(r"/history\?before=(\d+)", first)[1]
    second = browser.get(f"/history?before={older}").text
    numbers = [int(n) for n in re.findall(r"<td>(\d+)</td>", first + second)]
    assert numbers == list(range(60, 0, -1))
    assert page


def test_questions_are_those_of_the_library_and_do_not_come_again(browser, fitted):
    left, right = fitted.suggest_pairs(25, source="text", target="image")
    gains = fitted.expected_gains(left, right, source="text", target="image")
    page = browser.get("/ask").text
    first = hidden(page, "left"), hidden(page, "right")
    assert first == (left[0], right[0])
    assert f"{100 * gains[0]:.2g} %" in page
    answers = dict(zip(("left", "right"), first, strict=True))
    after = post(browser, "/ask?source=text&target=image", page, verdict="unsure",
                 **answers).text  # fmt: skip
    assert (hidden(after, "left"), hidden(after, "right")) == (left[1], right[1])
    id = re.search(r'name="undo" value="([^"]*)"', after)[1]
    back = post(browser, "/ask?source=text&target=image", after, undo=id).text
    assert (hidden(back, "left"), hidden(back, "right")) == first


def test_the_curve_grows_where_labels_exist(browser, bare):
    site = site_of(browser)
    page = search(browser)
    post(browser, f"/?{urlencode(ASK)}", page, must="i3")
    site.curve.measure()
    assert site.curve.points[-1].n_judgements == 1
    assert 0 < site.curve.points[-1].score <= 1
    assert "Quality of the search" in browser.get("/ask").text
    assert "Quality of the search" not in bare.get("/ask").text


def test_why_names_links_and_adds_up(browser, fitted):
    why = fitted.explain("t5", "i3", source="text", target="image", n_links=6)
    page = browser.get("/why", params=ASK | {"found": "i3"}).text
    assert "<svg" in page
    assert f"{why.links.parts[0].amount:+.3g}" in page
    parts = browser.get("/api/explanation", params=ASK | {"found": "i3"}).json()
    links = [p["amount"] for p in parts["parts"] if p["split"] == "Links and labels"]
    assert sum(links) == pytest.approx(why.score)
    assert browser.get("/why", params={"q": "green", "found": "i3"}).status_code == 200


def test_look_counts_what_there_is(browser):
    page = browser.get("/look").text
    assert ">60<" in page and ">50<" in page
    counts = browser.get("/api/overview").json()
    assert [own["n_items"] for own in counts["views"]] == [60, 50]
    n_must = sum(weight > 0 for *_, weight in PAIRS)
    assert counts["links"][0]["n_must"] == n_must
    assert counts["links"][0]["n_cannot"] == len(PAIRS) - n_must
    assert "Precision against recall" in page


def test_the_map_has_a_mark_for_each_item(browser):
    page = browser.get("/map", params={"source": "text", "target": "image"}).text
    assert page.count("<circle") == 60
    assert page.count("<rect") == 50
    assert 'data-title="text: red thing' in page


def test_pictures_come_by_id_and_are_kept(browser):
    answer = browser.get("/picture", params={"view": "image", "id": "i3"})
    assert answer.headers["content-type"] == "image/png"
    assert answer.content[:4] == b"\x89PNG"
    assert "max-age" in answer.headers["cache-control"]
    assert (
        browser.get("/picture", params={"view": "text", "id": "t3"}).status_code == 400
    )


def test_a_picture_of_my_own_searches(browser, fitted, tmp_path):
    from PIL import Image

    Image.new("RGB", (64, 64), (220, 40, 40)).save(tmp_path / "red.jpg")
    page = search(browser)
    answer = browser.post(
        "/upload",
        data={"form_token": form_token(page), "target": "text"},
        files={"picture": ("../../red.jpg", (tmp_path / "red.jpg").read_bytes())},
    )
    assert answer.status_code == 200
    assert "upload=" in str(answer.url)
    reds = [id for id in found_ids(answer.text)[:10] if int(id[1:]) % 3 == 0]
    assert len(reds) >= 8
    kept = re.search(r'src="(/upload/[0-9a-f]{32})"', answer.text)[1]
    assert browser.get(kept).content[:4] == b"\x89PNG"
    # The address is enough to come back.
    assert found_ids(browser.get(str(answer.url)).text) == found_ids(answer.text)


def test_a_model_that_takes_no_links_says_so(browser):
    site = site_of(browser)

    def refuse(**links):
        raise ls.ground.errors.LinkError("no")

    site.live._model.change_links = refuse
    page = search(browser)
    answer = post(browser, f"/?{urlencode(ASK)}", page, must="i3").text
    assert "Judgements are stored" in answer
    assert "it counts at the next fit" in answer
    assert site.live.store.count() == 1


def test_json_says_the_same_as_the_library(browser, fitted):
    ids, scores = fitted.search("t5", source="text", target="image", n_results=7)
    found = browser.get("/api/search", params=ASK | {"n": 7}).json()["results"]
    assert [own["id"] for own in found] == ids.tolist()
    assert [own["score"] for own in found] == pytest.approx(scores.tolist())
    assert browser.get("/api/views").json()["views"] == {"text": 60, "image": 50}
    items = browser.get("/api/items", params={"view": "text", "q": "green 1"}).json()
    assert {own["id"] for own in items["items"]} <= {f"t{k}" for k in range(1, 60, 3)}
    pairs = browser.get("/api/suggestions").json()["pairs"]
    left, right = fitted.suggest_pairs(25, source="text", target="image")
    assert [own["left"] for own in pairs] == left.tolist()
    assert [own["right"] for own in pairs] == right.tolist()


def test_json_judges_and_undoes(browser):
    body = {"source": "text", "source_id": "t5", "target": "image", "target_id": "i3"}
    body |= {"verdict": "must", "note": "same colour", "who": "robot", "wait": 9}
    answer = browser.post("/api/judgements", json=body)
    assert (answer.status_code, answer.json()["is_in_model"]) == (201, True)
    id = answer.json()["id"]
    rows = browser.get("/api/judgements").json()["judgements"]
    assert rows[0]["note"] == "same colour"
    assert browser.post(f"/api/judgements/{id}/undo", json={}).status_code == 201
    rows = browser.get("/api/judgements").json()["judgements"]
    assert [own["is_undo"] for own in rows] == [True, False]
    assert not rows[1]["is_active"]


def test_the_description_for_tools_and_its_page(browser):
    schema = browser.get("/openapi.json").json()
    assert schema["openapi"].startswith("3.")
    page = browser.get("/docs").text
    for path, methods in schema["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page
    assert "http" not in "".join(re.findall(r'(?:src|href)="([^"]*)"', page))


def test_health_and_counts(browser):
    assert browser.get("/health").text == "ok\n"
    search(browser)
    text = browser.get("/metrics").text
    assert 'linkspread_requests_total{method="GET",route="/",status="200"} 1' in text
    assert "linkspread_pending_rows 0" in text
    assert re.search(r'request_seconds_bucket\{le="\+Inf"\} \d+', text)


def test_the_log_tells_nothing_of_what_was_asked(browser, caplog):
    caplog.set_level("INFO", logger="linkspread.web")
    browser.get("/", params={"q": "secret words", "source": "text"})
    events = [record.event for record in caplog.records if hasattr(record, "event")]
    assert events[-1]["route"] == "/"
    assert "secret" not in json.dumps(events)


def test_the_first_page_of_results_is_small(browser):
    page = browser.get("/", params=ASK).content
    files = [browser.get(f"/static/page.{own}").content for own in ("css", "js")]
    assert len(page) + sum(map(len, files)) < 100_000
    # The script alone, before it is compressed.
    assert len(files[1]) <= 25_000


def test_addresses_hold_the_query_and_the_root(browser):
    from linkspread.web.site import Query

    url = site_of(browser).url("/why", Query("a", "b", item="U+03A9&x"), found="é")
    assert url == "/why?source=a&target=b&item=U%2B03A9%26x&found=%C3%A9"


def test_unknown_words_are_named_with_similar_ones(browser):
    page = browser.get("/", params={"q": "gren thing giraffe"}).text
    assert "No text contains “giraffe”; it is ignored." in page
    assert "“gren”" in page and "q=green+thing+giraffe" in page
    assert found_ids(page)
    nothing = browser.get("/", params={"q": "giraffe"})
    assert (nothing.status_code, found_ids(nothing.text)) == (200, [])
    assert "No text contains “giraffe”." in nothing.text


def test_every_picture_and_text_finds_more_like_it(browser, fitted):
    page = search(browser)
    first = found_ids(page)[0]
    assert f"source=image&amp;target=image&amp;item={first}" in page
    like = {"source": "image", "target": "image"}
    found = browser.get("/", params=like | {"item": first}).text
    wanted = fitted.search(first, **like, n_results=24)[0].tolist()
    assert found_ids(found) == wanted
    # Every way that is offered works.
    for way in re.findall(r'<option value="([^"]*~[^"]*)"', page):
        item = {"text": "t5", "image": "i3"}[way.partition("~")[0]]
        assert found_ids(browser.get("/", params={"way": way, "item": item}).text)


def test_scores_are_bars_of_strength(browser):
    hits = browser.get("/api/search", params=ASK | {"n": 50}).json()["results"]
    strengths = [own["strength"] for own in hits]
    assert strengths == sorted(strengths, reverse=True)
    assert 0.5 < strengths[0] <= 1 and strengths[-1] < 0.2
    assert f"Strength {round(100 * strengths[0])} of 100" in search(browser)


def judgement(browser, page, **more):
    """Send a judgement as the script of a page does."""
    body = {"form_token": form_token(page), "source": "text", "left": "t5"}
    body |= {"target": "image", "right": "i3", "verdict": "must"}
    return browser.post("/judgements", json=body | more)


def test_the_script_sends_judgements_that_count_once(browser):
    page, key = search(browser), "0" * 8 + "-0000-4000-8000-" + "0" * 12
    ids = {judgement(browser, page, key=key).json()["id"] for _ in range(3)}
    store = site_of(browser).live.store
    assert (len(ids), store.count(active_only=False)) == (1, 1)
    undone = judgement(browser, page, verdict="undo", undo=ids.pop())
    assert (undone.status_code, store.count()) == (200, 0)
    assert judgement(browser, page, form_token="0" * 64).status_code == 403
    assert browser.get("/session").json()["form_token"] == form_token(page)
    assert judgement(browser, page, right="nobody").status_code == 400


def test_two_people_without_names_are_two_and_are_asked_different_pairs(browser):
    client = TestClient(browser.app, base_url=ROOT)
    pages = [own.get("/ask").text for own in (browser, client)]
    names = {re.search("You are <b>([^<]*)", page)[1] for page in pages}
    assert len(names) == 2 and all(name.startswith("guest ") for name in names)
    asked = [set(re.findall(r'data-left="(.*?)" data-right="(.*?)"', p)) for p in pages]
    assert len(asked[0]) == len(asked[1]) == 8
    assert not asked[0] & asked[1]


def test_a_name_and_the_token_keep_the_search(browser):
    page = search(browser)
    assert f'value="/?{urlencode(ASK)}"'.replace("&", "&amp;") in page
    fields = {
        "form_token": form_token(page),
        "name": "ann",
        "back": f"/?{urlencode(ASK)}",
    }
    answer = browser.post("/name", data=fields)
    assert found_ids(answer.text) == found_ids(page)


def test_health_tells_the_truth_about_searching(browser, monkeypatch):
    model = site_of(browser).live.shown.model
    monkeypatch.setattr(type(model), "search", lambda *a, **how: ([], float("nan")))
    assert browser.get("/health").status_code == 503


def test_words_are_judged_and_found_again(browser, fitted):
    site, words = site_of(browser), {"q": "a  green thing"}
    page = browser.get("/", params=words).text
    last = found_ids(page)[-1]
    body = {"left": "", "q": words["q"], "right": last}
    assert judgement(browser, page, **body).status_code == 200
    row = next(site.live.store.judgements())
    assert row.left_id == "words:a green thing"
    again = browser.get("/", params=words).text
    assert found_ids(again).index(last) < found_ids(page).index(last)
    assert re.search(rf'name="must" value="{last}" aria-pressed="true"', again)
    assert "a green thing" in browser.get("/history").text
    # They are an item of their view from then on, also for another server.
    assert site.items["text"].n_items == 61
    other = create_app(site.live._folder)
    assert "words:a green thing" in other.state.site.items["text"].ids
    other.state.site.stop()
    # By a form, too.
    post(browser, f"/?{urlencode(words)}", again, cannot=last)
    assert site.live.store.count() == 2


def test_an_upload_is_judged_and_stays_a_picture(browser, tmp_path):
    from PIL import Image

    Image.new("RGB", (64, 64), (220, 40, 40)).save(tmp_path / "red.jpg")
    page = search(browser)
    answer = browser.post(
        "/upload",
        data={"form_token": form_token(page), "target": "text"},
        files={"picture": ("red.jpg", (tmp_path / "red.jpg").read_bytes())},
    )
    name = re.search(r"upload=([0-9a-f]{32})", str(answer.url))[1]
    body = {"left": "", "upload": name, "source": "image", "target": "text"}
    stored = judgement(browser, page, **body, right="t0")
    assert stored.status_code == 200
    for path in site_of(browser).uploads.folder.iterdir():
        path.unlink()
    again = browser.get(str(answer.url)).text
    assert re.search('name="must" value="t0" aria-pressed="true"', again)
    kept = {"view": "image", "id": f"picture:{name}"}
    assert browser.get("/picture", params=kept).content[:4] == b"\x89PNG"
