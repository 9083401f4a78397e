/* Findings in report.json: every member there is, null where nothing is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include <stepwatch/export.h>

#include "analyze/json_scan.h"
#include "findings_fixture.h"
#include "run_fixture.h"

static char *json_of(const sw_summary *summary, const sw_findings *findings)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_json(writer, summary, findings);
    size_t length;
    const char *text = sw_writer_text(writer, &length);
    struct sw__scan scan = {.at = text, .end = text + length};
    assert_true(sw__scan_skip(&scan));
    assert_false(scan.bad);
    char *copy = strdup(text);
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

static void check_has(const char *text, const char *part)
{
    if (!text || !strstr(text, part)) {
        fail_msg("'%s' is not in:\n%s", part, text ? text : "nothing");
    }
}

static void findings_have_every_member(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, tb_example());
    const sw_summary *summary = summarise(fixture);
    sw_findings *findings = findings_example(summary);
    char *text = json_of(summary, findings);
    check_has(text, "\"findings\": [\n"
                    "    {\n"
                    "      \"id\": \"loader_workers\",\n"
                    "      \"kind\": \"loader_workers\",\n"
                    "      \"also\": [\n"
                    "        \"loader_collate\",\n"
                    "        \"variance\"\n"
                    "      ],\n"
                    "      \"title\": \"38 % of each step waits for data\",\n"
                    "      \"severity\": \"high\",\n"
                    "      \"confidence\": 0.9,\n"
                    "      \"share\": 0.38,\n"
                    "      \"evidence\": {\n"
                    "        \"wait_share\": 0.38,\n"
                    "        \"batches_per_s\": null\n"
                    "      },\n"
                    "      \"where\": {\n"
                    "        \"file\": \"/home/user/train.py\",\n"
                    "        \"line\": 31,\n"
                    "        \"name\": \"main\"\n"
                    "      },\n"
                    "      \"advice\": [\n"
                    "        \"Set num_workers=2 in DataLoader (train.py:31).\",\n"
                    "        \"Keep the workers: persistent_workers=True.\"\n"
                    "      ],\n"
                    "      \"predicted\": {\n"
                    "        \"step_ms\": 5.5,\n"
                    "        \"speedup\": 1.5,\n"
                    "        \"low\": 1.25,\n"
                    "        \"high\": 1.75\n"
                    "      },\n"
                    "      \"rules\": [\n"
                    "        \"RULE-02\",\n"
                    "        \"RULE-03\"\n"
                    "      ]\n"
                    "    },\n");
    check_has(text, "\"share\": null,\n"
                    "      \"evidence\": {},\n"
                    "      \"where\": null,\n"
                    "      \"advice\": [],\n"
                    "      \"predicted\": null,\n"
                    "      \"rules\": []\n"
                    "    }\n"
                    "  ],\n"
                    "  \"notes\": [");
    check_has(text, "\"The steps are short.\"\n  ],");
    check_has(text, "\"bound\": \"data: 38 % of a step waits for batches\",\n");
    check_has(text, "\"kind\": \"gpu_throttle\",\n"
                    "      \"checked\": false,\n"
                    "      \"why\": \"there is no device\"\n");
    check_has(text, "\"kind\": \"gc\",\n"
                    "      \"checked\": true,\n"
                    "      \"why\": null\n");
    free(text);
    sw_findings_free(findings);
    fixture_free(fixture);
}

static void without_findings_the_list_is_empty(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, tb_example());
    const sw_summary *summary = summarise(fixture);
    char *text = json_of(summary, NULL);
    check_has(text, "\"findings\": [],\n");
    check_has(text, "\"bound\": null,\n");
    assert_null(strstr(text, "\"checked\": true"));
    free(text);
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_have_every_member),
        cmocka_unit_test(without_findings_the_list_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
