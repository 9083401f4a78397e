/* Rules: updates of tables of vectors, of whose rows a batch uses few. */
#include <math.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/rules.h"
#include "analyze/source_tables.h"
#include "analyze/summary.h"

/* Shares of the steps' time that are worth a finding: of the update, where the table is meant to be large; of one that is more than
 * the rest of a model explains; and of update and gradient together. */
#define UPDATE_LEAST 0.4
#define UPDATE_MUCH 0.25
/* Less of it is enough where the table is so large that nothing but going through it takes the time, and the gain is certain. */
#define UPDATE_SOME 0.05
#define BOTH_SOME 0.2
#define NUMBERS_LEAST 1e6
/* Time to fill a number of the gradient, in ns: less is not done by going through all of them. */
#define FILL_LEAST_NS 0.2
#define TABLE_LEAST 0.1 /* of the parameters: a large one */
/* What a sparse update of the rows that a batch used takes, in times of picking them in the forward: they are sorted, put
 * together, and gone through for each number that is kept of them. Recorded programs and their twins had 12 to 29 times. */
#define SPARSE_TIMES 18
#define SPARSE_TIMES_LEAST 12
#define SPARSE_TIMES_MOST 30
/* Time that a fused update takes for a number, of that of one that goes through memory for each operation. */
#define FUSED_PART 0.25
/* What is left of the gain then is worth a finding. */
#define SPARSE_LEAST 0.1
/* Files of the program whose source is looked at. */
enum { FILES_MOST = 16 };

/* Tables of vectors, where they are most of the model. */
struct tables {
    const sw_training_module *largest; /* NULL: they are not */
    double part;          /* of the parameters, in all tables that are large */
    double numbers;       /* theirs */
    double forward, back; /* theirs, in ns a step */
};

static struct tables large_tables(const sw_findings *all)
{
    size_t count;
    uint64_t steps, total;
    double sum = 0;
    struct tables found = {0};
    const sw_training_module *top = NULL;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; i < count; i++) {
        sum += (double)modules[i].trainable;
        if (modules[i].type && strncmp(modules[i].type, "Embedding", 9) == 0 &&
            (!top || modules[i].trainable > top->trainable)) {
            top = &modules[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (modules[i].type && strncmp(modules[i].type, "Embedding", 9) == 0 &&
            (double)modules[i].trainable > TABLE_LEAST * sum) {
            found.numbers += (double)modules[i].trainable;
            found.forward += steps ? (double)modules[i].total_ns / (double)steps : 0;
            found.back +=
                modules[i].backward_calls
                    ? (double)modules[i].backward_ns / (double)modules[i].backward_calls
                    : 0;
        }
    }
    found.part = sum > 0 ? found.numbers / sum : 0;
    found.largest = found.part > 0.7 ? top : NULL;
    return found;
}

/* Whether somebody computes with the table itself (a head that shares it), as the program's files read: then all rows have a gradient. */
static bool used_whole(sw_findings *all, const sw_training_module *table)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const char *dot = strrchr(table->name, '.');
    const char *seen[FILES_MOST];
    size_t files = 0;
    bool whole = false;
    for (size_t i = 0; dot && i < hot->count && files < FILES_MOST && !whole; i++) {
        const sw_stack_frame *frames[] = {hot->lines[i].frame, hot->lines[i].caller};
        for (size_t k = 0; k < 2 && files < FILES_MOST && !whole; k++) {
            const char *file = frames[k] ? frames[k]->file : NULL;
            bool known = !file || !sw__user_file(file);
            for (size_t n = 0; n < files && !known; n++) {
                known = strcmp(seen[n], file) == 0;
            }
            if (known) {
                continue;
            }
            size_t length = 0;
            char *text = sw__source_text(file, &length);
            seen[files++] = file;
            whole = text && sw__source_whole_table(text, length, dot + 1);
            sw__free(text);
        }
    }
    return whole;
}

/* What tables take of the backward at least, in ns a step: few were looked at, which may have been long ones. */
static double surely_back(const sw_findings *all, const struct tables *tables,
                          struct sw__estimate backward)
{
    size_t count;
    double roots = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        roots += modules[i].root && modules[i].backward_calls
                     ? (double)modules[i].backward_ns / (double)modules[i].backward_calls
                     : 0;
    }
    const double by_part =
        roots > tables->back ? tables->back / roots * backward.low : backward.low;
    return fmin(tables->back, by_part);
}

/* Whether one of the optimizers knows of sparse gradients alone. */
static bool updates_sparse(const sw_findings *all)
{
    size_t count;
    const sw_training_setting *list = sw_training_settings(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].name && strcmp(list[i].name, "class") == 0 && list[i].text &&
            strcmp(list[i].text, "SparseAdam") == 0) {
            return true;
        }
    }
    return false;
}

/* A dense gradient updates every row of a table, of which a batch uses few: that is most of the update then, and filling the
 * gradient much of the backward. */
bool sw__rules_tables(sw_findings *all, struct sw__estimate share,
                      struct sw__estimate time, const char *kind, bool mixed)
{
    const struct tables tables = large_tables(all);
    const sw_training_module *table = tables.largest;
    const double step = all->it.mean_ns;
    if (!table || table->backward_calls == 0 ||
        !((double)table->backward_ns / (double)table->backward_calls >
          3 * (double)table->total_ns / (double)(table->calls + 1))) {
        return false; /* It is sparse already. */
    }
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    /* Beside one that is fused it is the tables' that is not, and takes several times as long for each number. */
    const double rest = (1 - tables.part) * (mixed ? FUSED_PART : 1);
    const double part = tables.part / (tables.part + rest);
    const double more = fmin(tables.back, backward.mean);
    const struct sw__estimate saved = {
        .mean = part * time.mean + more - SPARSE_TIMES * tables.forward,
        .low = part * time.low - SPARSE_TIMES_MOST * tables.forward,
        .high = part * time.high + more - SPARSE_TIMES_LEAST * tables.forward,
        .count = time.count};
    const bool much = share.low > UPDATE_LEAST ||
                      (share.low > UPDATE_MUCH &&
                       tables.part * share.low + tables.back / step > UPDATE_LEAST);
    const double back = surely_back(all, &tables, backward);
    const bool some = share.low > UPDATE_SOME && tables.numbers >= NUMBERS_LEAST &&
                      part * share.low + back / step > BOTH_SOME &&
                      table->backward_calls >= 2 &&
                      back > FILL_LEAST_NS * tables.numbers && saved.low + back > 0 &&
                      !updates_sparse(all);
    if ((!much && !some) || !(saved.mean > SPARSE_LEAST * step) ||
        used_whole(all, table)) {
        return false;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_OPTIMIZER, "RULE-23");
    const sw_training_site *site = sw__site_of(all, SW_SITE_OPTIMIZER);
    if (site) {
        sw__draft_where(all, draft, site->file, site->line, sw__text(kind));
    }
    const double both = part * share.mean + back / step;
    if (much) {
        sw__draft_title(all, draft,
                        "%.0f %% of a step is the update of %s, all of whose rows it "
                        "goes through",
                        share.mean * 100, table->name);
    } else {
        sw__draft_title(all, draft,
                        "%.0f %% of a step is the update of %s and the filling of its "
                        "gradient, which go through all of its rows",
                        both * 100, table->name);
    }
    sw__draft_number(draft, "optimizer_ms", time.mean / 1e6);
    sw__draft_number(draft, "optimizer_share", share.mean);
    sw__draft_number(draft, "table_part_of_parameters", tables.part);
    sw__draft_number(draft, "table_forward_ms", tables.forward / 1e6);
    sw__draft_number(draft, "table_backward_ms", tables.back / 1e6);
    draft->finding.share = much ? share.mean : both;
    draft->finding.confidence = much ? 0.75 : 0.65;
    sw__draft_advise(all, draft,
                     "%s: sparse=True makes its gradient the rows that a batch used, and "
                     "SGD, Adagrad or SparseAdam update those alone.",
                     table->name);
    sw__draft_saves_in_steps(all, draft, saved, 1, 0.75, 1);
    return true;
}
