/* What people see of a run: the verdict, one screen of text, a page, Markdown, tables. Whatever names and findings hold, no
 * line is too wide, nothing becomes markup, and every field can be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <math.h>

#include <stepwatch/export.h>

#include "findings_fixture.h"
#include "run_fixture.h"

#define MS 1000000u
#define START 1000000000u
#define HOSTILE "<script>alert(1)</script>\"'&\x1b[31m\xff\xfe\xe2\x80\xae|`*_x_\n@all"

static void check_has(const char *text, const char *part)
{
    if (!text || !strstr(text, part)) {
        fail_msg("'%s' is not in:\n%s", part, text ? text : "nothing");
    }
}

/* Twenty steps of 10 ms, 4 of them data_wait, and sections with a hostile name. */
static const sw_summary *twenty_steps(struct fixture *fixture)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    tb_name(tb, 1, HOSTILE, 1, 255);
    tb_name(tb, 2, "comma, \"quote\" and/slash", 1, 255);
    strcpy(tb->super.name, "train");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t phases[SW_PHASE_SLOTS] = {[SW_PHASE_DATA_WAIT] = 4 * MS,
                                       [SW_PHASE_FORWARD] = 5 * MS,
                                       [SW_PHASE_OTHER] = 1 * MS};
    for (unsigned i = 0; i < 20; i++) {
        const uint64_t at = START + i * 10 * (uint64_t)MS;
        tb_begin(tb, lane, 1, at);
        call(tb, lane, 2, at + 1, 10);
        tb_end(tb, lane, at + 2 * MS, 0);
        step(tb, lane, at, phases, i / 10, 0);
    }
    write_trace(fixture, tb);
    return summarise(fixture);
}

/* The first finding of the example with texts that a program chose. */
static sw_findings *hostile_findings(const sw_summary *summary)
{
    sw_findings *all = findings_example(summary);
    sw_finding *finding = &all->list[0];
    finding->title = "38 % in " HOSTILE;
    finding->file = "/src/" HOSTILE;
    finding->name = HOSTILE;
    finding->advice[0] = "Change " HOSTILE ".";
    finding->id = HOSTILE;
    all->bound = HOSTILE;
    sw__findings_note(all, "%s", HOSTILE);
    all->unchecked[SW_FINDING_GC] = HOSTILE;
    return all;
}

/* --- text --- */

static char *text_of(const sw_summary *summary, const sw_findings *findings,
                     sw_text_options options)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_text(writer, summary, findings, &options);
    char *copy = strdup(sw_writer_text(writer, NULL));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

static size_t check_lines(const char *text, size_t columns, bool ascii)
{
    size_t lines = 0;
    for (; *text; lines++) {
        const size_t length = strcspn(text, "\n");
        assert_int_equal(text[length], '\n');
        assert_true(sw_text_columns(text, length) <= columns);
        assert_true(length == 0 || text[length - 1] != ' ');
        for (size_t i = 0; i < length; i++) {
            const unsigned char c = (unsigned char)text[i];
            assert_true(c >= 0x20 && c != 0x7f && (!ascii || c < 0x80));
        }
        text += length + 1;
    }
    return lines;
}

static void the_screen_says_what_to_change(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = findings_example(summary);
    char *text =
        text_of(summary, findings, (sw_text_options){.columns = 120, .unicode = true});
    check_has(text, "\nVerdict  38 % of each step waits for data; set num_workers=2 in "
                    "DataLoader (train.py:31) → 1.50× faster (1.25 "
                    "to 1.75)\n");
    check_has(text, "\nWhat to change\n"
                    "  1  38 % of each step waits for data\n"
                    "     1.50× faster (1.25 to 1.75) · train.py:31, main · high, 90 % "
                    "sure\n"
                    "     → Set num_workers=2 in DataLoader (train.py:31).\n"
                    "     → Keep the workers: persistent_workers=True.\n"
                    "  2  Collections of garbage take time\n"
                    "     low, 50 % sure\n");
    check_has(text, "  data_wait       4.00 ms   40.0 %");
    check_has(text, "Checked    28 of 29 kinds");
    check_has(text, "Note  The steps are short.");
    assert_null(strstr(text, "wait_share")); /* numbers are for those who ask */
    assert_true(check_lines(text, 120, false) <= 40);
    free(text);
    text =
        text_of(summary, findings, (sw_text_options){.columns = 80, .top = SW_TEXT_ALL});
    check_has(text, "-> 1.50x faster (1.25 to 1.75)");
    check_has(text, "     wait_share 0.38 | batches_per_s -\n");
    check_has(text, "  not gpu_throttle: there is no device\n");
    check_lines(text, 80, true);
    free(text);
    sw_findings_free(findings);
    fixture_free(fixture);
}

static void a_healthy_run_has_nothing_to_fix(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = findings_empty(summary);
    char *text = text_of(summary, findings, (sw_text_options){.columns = 80});
    check_has(text, "\nVerdict  nothing to fix\n");
    assert_null(strstr(text, "What to change"));
    free(text);
    findings->bound = "compute: 61 % of a step is in Net.conv2";
    text = text_of(summary, findings, (sw_text_options){.columns = 80});
    check_has(text,
              "\nVerdict  nothing to fix: compute: 61 % of a step is in Net.conv2\n");
    free(text);
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        findings->unchecked[i] = "there are too few steps";
    }
    findings->bound = NULL;
    text = text_of(summary, findings, (sw_text_options){.columns = 80});
    check_has(text, "\nVerdict  nothing can be said yet: there are too few steps\n");
    free(text);
    sw_findings_free(findings);
    fixture_free(fixture);
}

static void findings_of_programs_fit_every_width(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = hostile_findings(summary);
    for (size_t columns = SW_TEXT_COLUMNS_MIN; columns <= SW_TEXT_COLUMNS_MAX;
         columns += 7) {
        for (int look = 0; look < 4; look++) {
            char *text = text_of(summary, findings,
                                 (sw_text_options){.columns = columns,
                                                   .unicode = look & 1,
                                                   .top = look & 2 ? SW_TEXT_ALL : 0});
            check_lines(text, columns, !(look & 1));
            free(text);
        }
    }
    sw_findings_free(findings);
    fixture_free(fixture);
}

static void advice_that_is_no_sentence_keeps_its_capitals(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = findings_example(summary);
    findings->list[0].advice[0] = "DataLoader(num_workers=2)";
    char *text = text_of(summary, findings, (sw_text_options){.columns = 200});
    check_has(text, "waits for data; DataLoader(num_workers=2) -> 1.50x");
    free(text);
    findings->list[0].advice[0] = "num_workers=0 → num_workers=2";
    text = text_of(summary, findings, (sw_text_options){.columns = 200});
    check_has(text, "waits for data; num_workers=0 -> num_workers=2: 1.50x");
    free(text);
    findings->list[0].advice[0] = "DataLoader(num_workers=2)";
    findings->list[0].predicted = false;
    text = text_of(summary, findings, (sw_text_options){.columns = 200});
    check_has(text, "Verdict  38 % of each step waits for data; DataLoader("
                    "num_workers=2)\n");
    free(text);
    sw_findings_free(findings);
    fixture_free(fixture);
}

/* --- the page --- */

static char *html_of(const sw_summary *summary, const sw_findings *findings)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_html(writer, summary, findings);
    char *copy = strdup(sw_writer_text(writer, NULL));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

/* No script, no reference to anything outside the page, no placeholder left. */
static void check_page(const char *page)
{
    static const char *const never[] = {
        "<script", "{{",      "}}",     "http://", "https://", "src=",       "url(",
        "@import", "onload=", "<link ", "<iframe", "<img",     "javascript:"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        if (strstr(page, never[i])) {
            fail_msg("'%s' is in the page", never[i]);
        }
    }
    for (const char *at = page; (at = strstr(at, "href=\"")) != NULL; at++) {
        assert_int_equal(at[6], '#');
    }
    for (const char *c = page; *c; c++) {
        assert_true((unsigned char)*c >= 0x20 || *c == '\n');
    }
    check_has(page, "<meta charset=\"utf-8\">");
    check_has(page, "content=\"default-src 'none'; style-src 'unsafe-inline'\"");
    check_has(page, "prefers-color-scheme: dark");
    check_has(page, "</html>");
}

static void the_page_has_everything(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = findings_example(summary);
    char *page = html_of(summary, findings);
    check_page(page);
    static const char *const parts[] = {
        "<title>train - stepwatch</title>",
        "<div class=\"verdict change\">38 % of each step waits for data; set",
        "1.50× faster (1.25 to 1.75)",
        "a step would take 5.50 ms",
        "<li>Set num_workers=2 in DataLoader (train.py:31).</li>",
        "<code>/home/user/train.py:31</code> in <code>main</code>",
        "wait_share",
        "<span class=\"p-data_wait\" style=\"width:40.0%\"",
        "<path class=\"p-data_wait\" d=\"M0 ",
        "All 20 steps",
        "there is no device",
        "The steps are short.",
        "comma, &quot;quote&quot; and/slash"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        check_has(page, parts[i]);
    }
    free(page);
    page = html_of(summary, NULL);
    check_page(page);
    check_has(page, "Nobody looked for findings.");
    free(page);
    sw_findings_free(findings);
    fixture_free(fixture);
}

/* Tables of the framework and of profiles, from the rows that a training writes. */
static void the_page_has_places(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    static const char *const texts[] = {"Tensor.item<i>", "/src/train.py", "forward<b>",
                                        "size mismatch & more"};
    for (uint32_t i = 0; i < 4; i++) {
        tb_name(tb, i + 1, texts[i], 1, 255);
    }
    tb_lane(tb, 0, 0);
    tb_row(tb, &(sw_row){.table = SW_TABLE_WAIT,
                         .key = {1, 2, 40, SW_WAIT_SYNC},
                         .value = {100, MS, 4, 20, 0}});
    tb_row(tb, &(sw_row){.table = SW_TABLE_COMPILED,
                         .flags = SW_ROW_AGAIN,
                         .key = {3, 4, 2, 5},
                         .value = {3, 40 * MS}});
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    char *page = html_of(summary, NULL);
    check_page(page);
    check_has(page, "Tensor.item&lt;i&gt;</td><td><code>train.py:40</code></td>");
    check_has(page, "forward&lt;b&gt;</td><td><code>train.py:5</code></td>");
    check_has(page, "<td>yes</td><td>size mismatch &amp; more</td>");
    free(page);
    fixture_free(fixture);
}

static void names_stay_text_on_the_page(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = hostile_findings(summary);
    char *page = html_of(summary, findings);
    check_page(page);
    check_has(page, "38 % in &lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"
                    "\\x1b[31m\\xff\\xfe\\xe2\\x80\\xae|`*_x_\\n@all");
    free(page);
    sw_findings_free(findings);
    fixture_free(fixture);
}

/* A locale with a comma would spoil lengths and coordinates. */
static void the_page_does_not_depend_on_the_locale(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = findings_example(summary);
    char *plain = html_of(summary, findings);
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (setlocale(LC_ALL, locales[i])) {
            char *page = html_of(summary, findings);
            assert_string_equal(page, plain);
            free(page);
        }
    }
    setlocale(LC_ALL, "C");
    free(plain);
    sw_findings_free(findings);
    fixture_free(fixture);
}

static void a_run_without_steps_has_a_page(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    sw_findings *findings = findings_empty(summary);
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        findings->unchecked[i] = "the run has no steps";
    }
    char *page = html_of(summary, findings);
    check_page(page);
    check_has(page, "<div class=\"verdict\">no steps were recorded");
    check_has(page, "The program recorded no steps.");
    check_has(page, "The program recorded no sections.");
    free(page);
    char *text = text_of(summary, findings, (sw_text_options){.columns = 80});
    check_has(text, "Verdict  no steps were recorded");
    check_has(text, "No sections, steps or counters were recorded.");
    free(text);
    sw_findings_free(findings);
    fixture_free(fixture);
}

/* --- Markdown --- */

static char *markdown_of(const sw_summary *summary, const sw_findings *findings)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_markdown(writer, summary, findings);
    char *copy = strdup(sw_writer_text(writer, NULL));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

static void markdown_is_for_pull_requests(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = findings_example(summary);
    char *text = markdown_of(summary, findings);
    check_has(text, "### train\n\n**38 % of each step waits for data; set num_workers=2 "
                    "in DataLoader (train.py:31) → 1.50× faster (1.25 to 1.75)**\n\n");
    check_has(text, "| 20 | 10.0 ms | 10.0 ms | 10.0 ms | 100 | - |\n");
    check_has(text, "| data_wait | 4.00 ms | 40.0 % |\n");
    check_has(text, "1. **38 % of each step waits for data** (high, 1.50× faster (1.25 "
                    "to 1.75))  \n   in main, /home/user/train.py:31\n"
                    "   - Set num_workers=2 in DataLoader (train.py:31).\n");
    check_has(text, "Notes:\n\n- ");
    free(text);
    sw_findings_free(findings);
    findings = hostile_findings(summary);
    text = markdown_of(summary, findings);
    check_has(text, "38 % in \\<script\\>alert(1)\\</script\\>\"'\\&\\\\x1b\\[31m");
    check_has(text, "\\|\\`\\*\\_x\\_\\\\n@&#8203;all");
    free(text);
    sw_findings_free(findings);
    fixture_free(fixture);
}

/* --- tables --- */

static char *csv_of(enum sw_csv_table table, const sw_summary *summary,
                    const sw_findings *findings)
{
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_export_csv(writer, table, summary, findings), 0);
    char *copy = strdup(sw_writer_text(writer, NULL));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

/* Every row has as many fields as the head, by the rules of RFC 4180. Returns the rows, the head among them. */
static size_t check_csv(const char *text)
{
    size_t rows = 0;
    size_t fields = 0;
    size_t head = 0;
    while (*text) {
        if (*text == '"') {
            do {
                text++;
                assert_true(*text != '\0');
                if (text[0] == '"' && text[1] == '"') {
                    text += 2;
                }
            } while (*text != '"');
            text++;
        } else {
            text += strcspn(text, "\",\r\n");
        }
        fields++;
        if (*text == ',') {
            text++;
            continue;
        }
        assert_memory_equal(text, "\r\n", 2);
        text += 2;
        head = rows == 0 ? fields : head;
        assert_int_equal(fields, head);
        fields = 0;
        rows++;
    }
    return rows;
}

static void tables_can_be_read_back(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_findings *findings = hostile_findings(summary);
    static const size_t rows[SW_CSV_TABLES] = {[SW_CSV_STEPS] = 21,
                                               [SW_CSV_PHASES] = 1 + SW_PHASE_COUNT,
                                               [SW_CSV_SECTIONS] = 3,
                                               [SW_CSV_MODULES] = 1,
                                               [SW_CSV_FINDINGS] = 3};
    for (unsigned i = 0; i < SW_CSV_TABLES; i++) {
        char *text = csv_of((enum sw_csv_table)i, summary, findings);
        assert_int_equal(check_csv(text), rows[i]);
        free(text);
    }
    char *text = csv_of(SW_CSV_SECTIONS, summary, findings);
    check_has(text,
              "|`*_x_\n@all/comma, \"\"quote\"\" and\\/slash\",\"comma, \"\"quote\"\""
              " and/slash\",1,");
    check_has(text, "[31m\xEF\xBF\xBD\xEF\xBF\xBD");
    free(text);
    text = csv_of(SW_CSV_STEPS, summary, findings);
    check_has(text, "\r\n1,0,true,false,10000000,10000000,4000000,,,,,5000000,,");
    free(text);
    text = csv_of(SW_CSV_FINDINGS, summary, findings);
    check_has(text, "\"loader_collate variance\"");
    check_has(text, ",5500000,1.5,1.25,1.75,\"Change ");
    check_has(text, "\"gc\",\"gc\",\"\",\"Collections of garbage take "
                    "time\",\"low\",0.5,,,,,,,,,\"\",\"\"\r\n");
    free(text);
    assert_string_equal(sw_csv_table_name(SW_CSV_PHASES), "phases");
    assert_null(sw_csv_table_name(SW_CSV_TABLES));
    sw_findings_free(findings);
    fixture_free(fixture);
}

static int refuse(void *arg, const char *bytes, size_t length)
{
    (void)arg;
    (void)bytes;
    (void)length;
    return SW_ENOSPACE;
}

static void errors_of_writing_stick(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const sw_summary *summary = twenty_steps(fixture);
    sw_writer *writer = sw_writer_to_callback(refuse, NULL);
    sw_export_report_html(writer, summary, NULL);
    assert_int_equal(sw_writer_close(writer, NULL), SW_ENOSPACE);
    writer = sw_writer_to_callback(refuse, NULL);
    assert_int_equal(sw_export_csv(writer, SW_CSV_STEPS, summary, NULL), 0);
    assert_int_equal(sw_writer_close(writer, NULL), SW_ENOSPACE);
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_screen_says_what_to_change),
        cmocka_unit_test(a_healthy_run_has_nothing_to_fix),
        cmocka_unit_test(findings_of_programs_fit_every_width),
        cmocka_unit_test(advice_that_is_no_sentence_keeps_its_capitals),
        cmocka_unit_test(the_page_has_everything),
        cmocka_unit_test(the_page_has_places),
        cmocka_unit_test(names_stay_text_on_the_page),
        cmocka_unit_test(the_page_does_not_depend_on_the_locale),
        cmocka_unit_test(a_run_without_steps_has_a_page),
        cmocka_unit_test(markdown_is_for_pull_requests),
        cmocka_unit_test(tables_can_be_read_back),
        cmocka_unit_test(errors_of_writing_stick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
