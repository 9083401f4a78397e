/* Findings: drafting, choosing among those that explain the same, ordering. */
#include "analyze/findings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"

static const char *const kind_names[SW_FINDING_KINDS] = {
#define SW_FINDING_NAME(symbol, name, check) name,
    SW_FINDING_TABLE(SW_FINDING_NAME)
#undef SW_FINDING_NAME
};

const char *sw_finding_kind_name(enum sw_finding_kind kind)
{
    return (unsigned)kind < SW_FINDING_KINDS ? kind_names[kind] : NULL;
}

const char *sw_severity_name(enum sw_severity severity)
{
    static const char *const names[] = {"low", "medium", "high", "critical"};
    return (unsigned)severity < sizeof names / sizeof names[0] ? names[severity] : NULL;
}

/* --- texts --- */

static const char *format_text(sw_findings *all, const char *format, va_list arguments)
{
    char text[1024];
    const int length = vsnprintf(text, sizeof text, format, arguments);
    const size_t kept = length < 0                     ? 0
                        : (size_t)length < sizeof text ? (size_t)length
                                                       : sizeof text - 1;
    const char *copy = sw__arena_copy(all->arena, text, kept);
    all->failed |= !copy;
    return copy;
}

const char *sw__findings_format(sw_findings *all, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(all, format, arguments);
    va_end(arguments);
    return text;
}

void sw__findings_unchecked(sw_findings *all, enum sw_finding_kind kind,
                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    all->unchecked[kind] = format_text(all, format, arguments);
    va_end(arguments);
}

void sw__findings_note(sw_findings *all, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(all, format, arguments);
    va_end(arguments);
    struct sw__finding_note *note =
        sw__arena_take(all->arena, sizeof *note, _Alignof(struct sw__finding_note));
    all->failed |= !note;
    if (note && text) {
        *note = (struct sw__finding_note){.text = text};
        struct sw__finding_note **last = &all->first_note;
        while (*last) {
            last = &(*last)->next;
        }
        *last = note;
    }
}

/* --- drafts --- */

struct sw__draft *sw__draft(sw_findings *all, enum sw_finding_kind kind, const char *rule)
{
    static _Thread_local struct sw__draft scratch;
    struct sw__draft *draft =
        sw__arena_take(all->arena, sizeof *draft, _Alignof(struct sw__draft));
    if (draft) {
        *draft = (struct sw__draft){.next = all->first};
        all->first = draft;
    } else {
        all->failed = true;
        draft = &scratch;
        *draft = (struct sw__draft){0};
    }
    draft->finding = (sw_finding){.kind = kind,
                                  .confidence = 0.5,
                                  .share = NAN,
                                  .speedup = NAN,
                                  .low = NAN,
                                  .high = NAN};
    sw__draft_rule(draft, rule);
    return draft;
}

void sw__draft_rule(struct sw__draft *draft, const char *rule)
{
    sw_finding *finding = &draft->finding;
    for (size_t i = 0; rule && i < finding->rule_count; i++) {
        if (strcmp(finding->rules[i], rule) == 0) {
            return;
        }
    }
    if (rule && finding->rule_count < SW_FINDING_RULES) {
        finding->rules[finding->rule_count++] = rule;
    }
}

void sw__draft_title(sw_findings *all, struct sw__draft *draft, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    draft->finding.title = format_text(all, format, arguments);
    va_end(arguments);
}

void sw__draft_advise(sw_findings *all, struct sw__draft *draft, const char *format, ...)
{
    sw_finding *finding = &draft->finding;
    if (finding->advice_count < SW_FINDING_ADVICE) {
        va_list arguments;
        va_start(arguments, format);
        const char *text = format_text(all, format, arguments);
        va_end(arguments);
        if (text) {
            finding->advice[finding->advice_count++] = text;
        }
    }
}

void sw__draft_number(struct sw__draft *draft, const char *name, double value)
{
    sw_finding *finding = &draft->finding;
    if (finding->evidence_count < SW_FINDING_NUMBERS) {
        finding->evidence[finding->evidence_count++] =
            (sw_finding_number){.name = name, .value = value};
    }
}

void sw__draft_where(sw_findings *all, struct sw__draft *draft, const char *file,
                     uint32_t line, const char *name)
{
    sw_finding *finding = &draft->finding;
    finding->file = file ? sw__findings_format(all, "%s", file) : NULL;
    finding->line = file ? line : 0;
    finding->name = name ? sw__findings_format(all, "%s", name) : NULL;
}

/* --- choosing and ordering --- */

static double gain(const sw_finding *finding)
{
    return finding->predicted ? finding->speedup : 0;
}

/* Whether the first of two findings that explain the same time is the one to tell. */
static bool wins(const struct sw__draft *a, const struct sw__draft *b)
{
    if (a->group == SW__GROUP_LOADER && a->specific != b->specific) {
        return a->specific > b->specific;
    }
    if (gain(&a->finding) != gain(&b->finding)) {
        return gain(&a->finding) > gain(&b->finding);
    }
    return a->specific > b->specific;
}

/* Takes out those that another of their group covers. */
static void choose(sw_findings *all)
{
    for (struct sw__draft *a = all->first; a; a = a->next) {
        for (struct sw__draft **at = &all->first; *at;) {
            struct sw__draft *b = *at;
            if (a != b && a->group != SW__GROUP_NONE && a->group == b->group &&
                wins(a, b)) {
                a->finding.also |= b->finding.also | (uint64_t)1 << b->finding.kind;
                for (size_t i = 0; i < b->finding.rule_count; i++) {
                    sw__draft_rule(a, b->finding.rules[i]);
                }
                *at = b->next;
            } else {
                at = &b->next;
            }
        }
    }
}

static int by_gain(const void *left, const void *right)
{
    const sw_finding *a = left;
    const sw_finding *b = right;
    if (gain(a) != gain(b)) {
        return gain(a) < gain(b) ? 1 : -1;
    }
    if (a->severity != b->severity) {
        return a->severity < b->severity ? 1 : -1;
    }
    return (a->kind > b->kind) - (a->kind < b->kind);
}

/* The kind, and where it is: the same in every run of a program that has not changed there. */
static const char *id_of(sw_findings *all, const sw_finding *finding)
{
    const char *slash = finding->file ? strrchr(finding->file, '/') : NULL;
    const char *file = slash ? slash + 1 : finding->file;
    const char *kind = sw_finding_kind_name(finding->kind);
    if (file && finding->name) {
        return sw__findings_format(all, "%s:%s:%s", kind, file, finding->name);
    }
    if (file || finding->name) {
        return sw__findings_format(all, "%s:%s", kind, file ? file : finding->name);
    }
    return kind;
}

/* Of two findings of a kind at one place, which two rules may come to, the one that gains more is told: they are one to the user,
 * whose ids tell findings apart. */
static void keep_one_of_each(sw_findings *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        size_t at = 0;
        while (at < kept && strcmp(all->list[at].id, all->list[i].id) != 0) {
            at++;
        }
        if (at < kept) {
            all->list[at].also |= all->list[i].also;
        } else {
            all->list[kept++] = all->list[i];
        }
    }
    all->count = kept;
}

static int list_up(sw_findings *all)
{
    choose(all);
    size_t count = 0;
    for (const struct sw__draft *draft = all->first; draft; draft = draft->next) {
        count++;
    }
    all->list =
        sw__arena_take(all->arena, (count + 1) * sizeof *all->list, _Alignof(sw_finding));
    if (!all->list) {
        return SW_ENOMEM;
    }
    for (const struct sw__draft *draft = all->first; draft; draft = draft->next) {
        sw_finding *finding = &all->list[all->count++];
        *finding = draft->finding;
        finding->also &= ~((uint64_t)1 << finding->kind);
        finding->id = id_of(all, finding);
    }
    if (all->count > 1) {
        qsort(all->list, all->count, sizeof *all->list, by_gain);
        keep_one_of_each(all);
    }
    return all->failed ? SW_ENOMEM : SW_OK;
}

/* --- the public face --- */

static void unchecked_all(sw_findings *all, const char *why)
{
    for (unsigned kind = 0; kind < SW_FINDING_KINDS; kind++) {
        all->unchecked[kind] = why;
    }
}

int sw_findings_of_summary(sw_findings **out, const sw_summary *summary,
                           sw_error_info *info)
{
    *out = NULL;
    sw_findings *all = sw__alloc_zero(1, sizeof *all);
    int error = all ? SW_OK : SW_ENOMEM;
    if (!error) {
        all->arena = sw__arena_create(0);
        error = all->arena ? sw__case_begin(&all->it, summary) : SW_ENOMEM;
    }
    if (!error && !all->it.steps) {
        unchecked_all(all, "the run has no steps");
    } else if (!error && all->it.count == 0) {
        unchecked_all(all, "there are too few steps outside the warm-up");
    } else if (!error) {
        sw__rules_loader(all);
        sw__rules_compute(all);
        sw__rules_host(all);
        sw__rules_gathers(all);
        sw__rules_aside(all);
        sw__rules_machine(all);
        sw__rules_wide_arrays(all);
    }
    if (!error) {
        sw__rules_notes(all);
        error = list_up(all);
    }
    if (error) {
        sw_findings_free(all);
        return sw_error_set(info, error, "Out of memory.");
    }
    *out = all;
    return SW_OK;
}

void sw_findings_free(sw_findings *findings)
{
    if (findings) {
        sw__case_end(&findings->it);
        sw__arena_free(findings->arena);
        sw__free(findings);
    }
}

const sw_finding *sw_findings_get(const sw_findings *findings, size_t *count)
{
    *count = findings->count;
    return findings->list;
}

const char *sw_findings_bound(const sw_findings *findings)
{
    return findings->bound;
}

bool sw_findings_checked(const sw_findings *findings, enum sw_finding_kind kind,
                         const char **why)
{
    const char *reason =
        (unsigned)kind < SW_FINDING_KINDS ? findings->unchecked[kind] : "no such kind";
    if (why) {
        *why = reason;
    }
    return !reason;
}

const char *sw_findings_note(const sw_findings *findings, size_t index)
{
    const struct sw__finding_note *note = findings->first_note;
    while (note && index--) {
        note = note->next;
    }
    return note ? note->text : NULL;
}
