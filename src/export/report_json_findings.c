/* What is wrong, in report.json: the findings, what bounds the run, and what was looked at. */
#include "export/json_put.h"
#include "export/report_parts.h"

static void put_also(sw_writer *w, uint64_t kinds)
{
    sw_json_key(w, "also");
    sw_json_array_begin(w);
    for (unsigned kind = 0; kind < SW_FINDING_KINDS; kind++) {
        if (kinds & (uint64_t)1 << kind) {
            sw_json_string(w, sw_finding_kind_name((enum sw_finding_kind)kind));
        }
    }
    sw_json_array_end(w);
}

static void put_texts(sw_writer *w, const char *key, const char *const *texts,
                      size_t count)
{
    sw_json_key(w, key);
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        sw_json_string(w, texts[i]);
    }
    sw_json_array_end(w);
}

static void put_where(sw_writer *w, const sw_finding *finding)
{
    sw_json_key(w, "where");
    if (!finding->file && !finding->name) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_string(w, "file", finding->file);
    put_uint(w, "line", finding->line ? finding->line : SW_UNKNOWN);
    put_string(w, "name", finding->name);
    sw_json_object_end(w);
}

static void put_predicted(sw_writer *w, const sw_finding *finding)
{
    sw_json_key(w, "predicted");
    if (!finding->predicted) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_ms(w, "step_ms", finding->step_ns);
    put_double(w, "speedup", finding->speedup);
    put_double(w, "low", finding->low);
    put_double(w, "high", finding->high);
    sw_json_object_end(w);
}

static void put_finding(sw_writer *w, const sw_finding *finding)
{
    sw_json_object_begin(w);
    put_string(w, "id", finding->id);
    put_string(w, "kind", sw_finding_kind_name(finding->kind));
    put_also(w, finding->also);
    put_string(w, "title", finding->title);
    put_string(w, "severity", sw_severity_name(finding->severity));
    put_double(w, "confidence", finding->confidence);
    put_double(w, "share", finding->share);
    sw_json_key(w, "evidence");
    sw_json_object_begin(w);
    for (size_t i = 0; i < finding->evidence_count; i++) {
        put_double(w, finding->evidence[i].name, finding->evidence[i].value);
    }
    sw_json_object_end(w);
    put_where(w, finding);
    put_texts(w, "advice", finding->advice, finding->advice_count);
    put_predicted(w, finding);
    put_texts(w, "rules", finding->rules, finding->rule_count);
    sw_json_object_end(w);
}

void sw__json_findings(sw_writer *w, const sw_findings *findings)
{
    size_t count = 0;
    const sw_finding *list = findings ? sw_findings_get(findings, &count) : NULL;
    sw_json_key(w, "findings");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        put_finding(w, &list[i]);
    }
    sw_json_array_end(w);
}

void sw__json_checks(sw_writer *w, const sw_findings *findings)
{
    put_string(w, "bound", findings ? sw_findings_bound(findings) : NULL);
    sw_json_key(w, "checked");
    sw_json_array_begin(w);
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        const enum sw_finding_kind kind = (enum sw_finding_kind)i;
        const char *why = "nobody looked";
        const bool checked = findings && sw_findings_checked(findings, kind, &why);
        sw_json_object_begin(w);
        put_string(w, "kind", sw_finding_kind_name(kind));
        put_bool(w, "checked", checked);
        put_string(w, "why", why);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}
