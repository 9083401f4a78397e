/* Training in the text report: the loader in two lines, the slowest modules, recompilations, and where the program waits
 * for the device. Each only where there is something to say. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "export/report_parts.h"

#define MODULES_USUAL 5
#define WAITS_USUAL 3
#define STAGES_SHOWN 6
#define ITEM 200
#define ITEMS 12

struct items {
    char text[ITEMS][ITEM];
    size_t count;
};

static char *item(struct items *items)
{
    const size_t index = items->count < ITEMS - 1 ? items->count++ : ITEMS - 1;
    return items->text[index];
}

static void flow(const struct sw__page *page, const char *label,
                 const struct items *items)
{
    const char *pointers[ITEMS];
    for (size_t i = 0; i < items->count; i++) {
        pointers[i] = items->text[i];
    }
    if (items->count > 0) {
        sw__page_styled(page, SW__BOLD, label);
        sw__page_flow(page, pointers, items->count, 9);
    }
}

static void duration(const struct sw__page *page, char out[24], double ns)
{
    sw_text_duration(out, ns, !page->unicode);
}

/* Tenths of a percent, without the locale's comma. */
static void percent(char out[24], double share)
{
    const unsigned tenths = share >= 0 && share <= 1 ? (unsigned)(share * 1000 + 0.5) : 0;
    snprintf(out, 24, "%u.%u %%", tenths / 10, tenths % 10);
}

static void counted(char *out, size_t size, uint64_t count, const char *one,
                    const char *many)
{
    char number[32];
    sw_text_count(number, count);
    snprintf(out, size, "%s %s", number, count == 1 ? one : many);
}

/* --- the loader --- */

static void put_settings(const struct sw__page *page, const sw_summary *summary,
                         const sw_training_loader *loader)
{
    struct items items = {.count = 0};
    const double waits = sw_summary_wait_share(summary);
    char name[48];
    char text[24];
    sw__report_cell(page, name, sizeof name, loader->name ? loader->name : "(unnamed)");
    if (loader->known) {
        char workers[48];
        counted(workers, sizeof workers, loader->worker_setting, "worker", "workers");
        snprintf(item(&items), ITEM, "%s: %s", name, workers);
    } else {
        snprintf(item(&items), ITEM, "%s: settings not known", name);
    }
    if (loader->batch_size != SW_UNKNOWN) {
        counted(text, sizeof text, loader->batch_size, "", "");
        snprintf(item(&items), ITEM, "batch of %.*s", (int)strcspn(text, " "), text);
    }
    if (loader->bits & SW_LOADER_PIN) {
        snprintf(item(&items), ITEM, "pin_memory");
    }
    if (loader->bits & SW_LOADER_PERSISTENT) {
        snprintf(item(&items), ITEM, "persistent_workers");
    }
    if (loader->prefetch_factor != SW_UNKNOWN) {
        counted(text, sizeof text, loader->prefetch_factor, "", "");
        snprintf(item(&items), ITEM, "prefetch_factor %.*s", (int)strcspn(text, " "),
                 text);
    }
    if (!isnan(waits)) {
        percent(text, waits);
        snprintf(item(&items), ITEM, "steps wait %s for it", text);
    }
    double busy = 0;
    size_t known = 0;
    for (size_t i = 0; i < loader->worker_count; i++) {
        if (!isnan(loader->workers[i].busy_share)) {
            busy += loader->workers[i].busy_share;
            known++;
        }
    }
    if (known > 0) {
        percent(text, busy / (double)known);
        snprintf(item(&items), ITEM, "workers busy %s", text);
    }
    sw_write_text(page->writer, "\n");
    flow(page, "Loader   ", &items);
}

/* What a batch takes, stage by stage. */
static void put_stages(const struct sw__page *page, const sw_training_loader *loader)
{
    struct items items = {.count = 0};
    if (loader->looked == SW_UNKNOWN || loader->looked == 0) {
        return;
    }
    for (size_t i = 0; i < loader->stage_count && items.count < STAGES_SHOWN; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        char name[48];
        char taken[24];
        char share[24];
        if (stage->waits || stage->self_ns == 0) {
            continue;
        }
        sw__report_cell(page, name, sizeof name, stage->name ? stage->name : "?");
        duration(page, taken, (double)stage->self_ns / (double)loader->looked);
        percent(share, stage->share);
        snprintf(item(&items), ITEM, "%s %s (%s)", name, taken, share);
    }
    flow(page, "a batch  ", &items);
}

/* --- modules --- */

static void put_modules(const struct sw__page *page, const sw_summary *summary,
                        size_t top)
{
    size_t count;
    uint64_t steps;
    uint64_t steps_ns;
    const sw_training_module *modules =
        sw_training_modules(sw_summary_training(summary), &count);
    sw_summary_looked_steps(summary, &steps, &steps_ns);
    const size_t most = top == SW_TEXT_ALL || top < MODULES_USUAL ? top : MODULES_USUAL;
    struct sw__table table = {.title = "Slowest modules",
                              .column_count = 5,
                              .column = {{"class", 70},
                                         {"calls", 50},
                                         {"a step", 100},
                                         {"% step", 90},
                                         {"backward", 60}}};
    for (size_t i = 0; i < count && i < most && modules[i].self_ns > 0; i++) {
        const sw_training_module *module = &modules[i];
        struct sw__cells *cells = sw__table_row(&table);
        char text[24];
        char number[32];
        if (!cells) {
            break;
        }
        cells->name = module->name;
        cells->name_length = strlen(module->name);
        sw__report_cell(page, cells->cell[0], 24, module->type ? module->type : "-");
        sw_text_count(number, module->calls);
        snprintf(cells->cell[1], SW__CELL, "%s", number);
        for (size_t c = 2; c < 5; c++) {
            snprintf(cells->cell[c], SW__CELL, "-");
        }
        if (steps > 0 && steps_ns > 0) {
            duration(page, text, (double)module->self_ns / (double)steps);
            snprintf(cells->cell[2], SW__CELL, "%s", text);
            percent(text, module->self_ns < steps_ns
                              ? (double)module->self_ns / (double)steps_ns
                              : 1);
            snprintf(cells->cell[3], SW__CELL, "%.*s", (int)strcspn(text, " "), text);
        }
        if (module->backward_calls > 0) {
            duration(page, text,
                     (double)module->backward_ns / (double)module->backward_calls);
            snprintf(cells->cell[4], SW__CELL, "%s", text);
        }
    }
    if (table.count > 0) {
        sw_write_text(page->writer, "\n");
        sw__table_print(&table, page);
    }
    sw__table_free(&table);
}

/* --- compilations and waits --- */

static void put_where(const struct sw__page *page, char *out, size_t size,
                      const char *name, const char *file, uint32_t line)
{
    char what[64];
    char where[SW__CELL];
    sw__report_cell(page, what, sizeof what, name ? name : "?");
    if (file) {
        sw__report_where(page, where, file, line);
        snprintf(out, size, "%s (%s)", what, where);
    } else {
        snprintf(out, size, "%s", what);
    }
}

/* Compiling once is what compilers do; only what was compiled again is worth a line. */
static void put_compile(const struct sw__page *page, const sw_training *training)
{
    size_t count;
    const sw_training_compilation *list = sw_training_compilations(training, &count);
    const sw_training_compilation *worst = NULL;
    uint64_t compilations = 0;
    uint64_t again = 0;
    double ns = 0;
    for (size_t i = 0; i < count; i++) {
        compilations += list[i].compilations;
        ns += (double)list[i].ns;
        if (list[i].again) {
            again += list[i].compilations;
            worst = !worst || list[i].ns > worst->ns ? &list[i] : worst;
        }
    }
    if (!worst) {
        return;
    }
    char text[1024];
    char all[48];
    char taken[24];
    char times[48];
    char where[128];
    char reason[400] = "";
    counted(all, sizeof all, compilations, "compilation", "compilations");
    counted(times, sizeof times, again, "was of code that was compiled already",
            "were of code that was compiled already");
    duration(page, taken, ns);
    put_where(page, where, sizeof where, worst->function, worst->file, worst->line);
    if (worst->reason) {
        sw__report_cell(page, reason, sizeof reason, worst->reason);
    }
    snprintf(text, sizeof text, "%s took %s; %s, most of it %s%s%s", all, taken, times,
             where, *reason ? ": " : "", reason);
    sw_write_text(page->writer, "\n");
    sw__page_wrap(page, "Compile  ", SW__BOLD, text);
}

static void put_waits(const struct sw__page *page, const sw_training *training)
{
    size_t count;
    const sw_training_wait *waits = sw_training_waits(training, &count);
    struct items items = {.count = 0};
    for (size_t i = 0; i < count && items.count < WAITS_USUAL && waits[i].ns > 0; i++) {
        char where[128];
        char taken[24];
        char times[48];
        put_where(page, where, sizeof where, waits[i].call, waits[i].file, waits[i].line);
        duration(page, taken, (double)waits[i].ns);
        counted(times, sizeof times, waits[i].calls, "call", "calls");
        snprintf(item(&items), ITEM, "%s %s in %s", where, taken, times);
    }
    if (items.count > 0) {
        sw_write_text(page->writer, "\n");
        flow(page, "Waits    ", &items);
    }
}

void sw__report_training(const struct sw__page *page, const sw_summary *summary,
                         size_t top)
{
    const sw_training *training = sw_summary_training(summary);
    const sw_training_loader *loader = sw_summary_main_loader(summary);
    if (loader) {
        put_settings(page, summary, loader);
        put_stages(page, loader);
    }
    put_modules(page, summary, top);
    put_compile(page, training);
    put_waits(page, training);
}
