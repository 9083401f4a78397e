/* What rules share. */
#include "analyze/rules.h"

#include <math.h>
#include <string.h>

#include "analyze/summary.h"

double sw__worker_period(const sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    if (!loader || loader->worker_count == 0) {
        return 0;
    }
    uint64_t busy = 0;
    uint64_t batches = 0;
    for (size_t i = 0; i < loader->worker_count; i++) {
        busy = sw__add(busy, loader->workers[i].busy_ns);
        batches = sw__add(batches, loader->workers[i].batches);
    }
    return batches ? (double)busy / (double)batches / (double)loader->worker_count : 0;
}

bool sw__batches_made_inside(const sw_findings *all)
{
    return all->it.loader && all->it.loader->worker_count == 0;
}

void sw__draft_saves_in_steps(sw_findings *all, struct sw__draft *draft,
                              struct sw__estimate ns, double part, double low,
                              double high)
{
    const double period = sw__worker_period(all);
    const double most = all->it.mean_ns - period;
    double saved[3] = {ns.mean * part, ns.low * low, ns.high * high};
    for (unsigned i = 0; i < 3; i++) {
        saved[i] = saved[i] < most ? saved[i] : most;
        saved[i] = saved[i] > 0 ? sw__saved_per_step(all, saved[i]) : 0;
    }
    sw__draft_saves_down_to(all, draft, saved[0], saved[1], saved[2],
                            sw__saved_per_step(all, period));
}

struct sw__estimate sw__phase_time(const sw_findings *all, uint64_t phases)
{
    struct sw__estimate share = sw__case_share(&all->it, phases);
    share.mean *= all->it.mean_ns;
    share.low *= all->it.mean_ns;
    share.high *= all->it.mean_ns;
    return share;
}

static const sw_training_setting *setting(const sw_findings *all, const char *what,
                                          const char *name)
{
    size_t count;
    const sw_training_setting *list = sw_training_settings(all->it.training, &count);
    for (size_t i = count; i-- > 0;) { /* the newest */
        if (list[i].what && list[i].name && strcmp(list[i].what, what) == 0 &&
            strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

const char *sw__setting_text(const sw_findings *all, const char *what, const char *name)
{
    const sw_training_setting *found = setting(all, what, name);
    return found ? found->text : NULL;
}

double sw__setting_number(const sw_findings *all, const char *what, const char *name)
{
    const sw_training_setting *found = setting(all, what, name);
    return found ? found->number : NAN;
}

const sw_training_site *sw__site_of(const sw_findings *all, unsigned what)
{
    size_t count;
    const sw_training_site *list = sw_training_sites(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].what == what) {
            return &list[i];
        }
    }
    return NULL;
}

const char *sw__fact(const sw_findings *all, const char *key)
{
    const sw_summary *summary = all->it.summary;
    return sw_trace_fact(sw__summary_trace(summary, summary->step_trace), key);
}

static bool below_same(const sw_summary_section *rows, const sw_summary_section *row)
{
    for (uint32_t at = row->parent; at != SW_NO_ROW; at = rows[at].parent) {
        if (rows[at].phase == row->phase) {
            return true;
        }
    }
    return false;
}

uint64_t sw__phase_calls(const sw_findings *all, unsigned phase, const char **name)
{
    size_t count;
    uint64_t calls = 0;
    uint64_t most = 0;
    const sw_summary_section *rows =
        sw_summary_sections(all->it.summary, SW_ROWS_EACH, &count);
    *name = NULL;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].phase == phase && !below_same(rows, &rows[i])) {
            calls = sw__add(calls, rows[i].calls);
            if (!*name || rows[i].total_ns > most) {
                most = rows[i].total_ns;
                *name = rows[i].name;
            }
        }
    }
    return calls;
}

double sw__steps_looked(const sw_findings *all)
{
    return (double)(all->it.steps->count - all->it.steps->brief);
}

bool sw__has_device(const sw_findings *all)
{
    const char *backend = sw__fact(all, "jax_backend");
    if (backend && strcmp(backend, "cpu") != 0) {
        return true;
    }
    size_t count;
    sw_training_waits(all->it.training, &count);
    if (count > 0 && !backend) { /* torch has such rows only where there is a device */
        return true;
    }
    const sw_training_operator *list = sw_training_operators(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].device == 1) {
            return true;
        }
    }
    return false;
}

bool sw__is_asynchronous(const sw_findings *all)
{
    return sw__fact(all, "jax_backend") != NULL || sw__has_device(all);
}

bool sw__has_draft(const sw_findings *all, enum sw_finding_kind kind)
{
    for (const struct sw__draft *draft = all->first; draft; draft = draft->next) {
        if (draft->finding.kind == kind) {
            return true;
        }
    }
    return false;
}

const char *sw__file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

sw_trace *sw__step_trace(const sw_summary *summary)
{
    return sw_run_trace(summary->source, summary->step_trace);
}

enum sw_finding_kind sw__kind_by_name(const char *function)
{
    static const struct {
        const char *word;
        enum sw_finding_kind kind;
    } words[] = {
        {"valid", SW_FINDING_VALIDATION},    {"eval", SW_FINDING_VALIDATION},
        {"save", SW_FINDING_CHECKPOINT},     {"checkpoint", SW_FINDING_CHECKPOINT},
        {"snapshot", SW_FINDING_CHECKPOINT}, {"dump", SW_FINDING_CHECKPOINT},
        {"backup", SW_FINDING_CHECKPOINT},   {"keep_best", SW_FINDING_CHECKPOINT},
        {"log_", SW_FINDING_LOGGING},        {"plot", SW_FINDING_LOGGING},
        {"report", SW_FINDING_LOGGING},      {"histogram", SW_FINDING_LOGGING}};
    const char *dot = strrchr(function, '.');
    const char *name = dot ? dot + 1 : function;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(name, words[i].word)) {
            return words[i].kind;
        }
    }
    return SW_FINDING_VARIANCE;
}
