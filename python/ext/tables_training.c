/* Tables of training: modules, loaders and their stages, batches, compilations, waits, sites, settings, operators, epochs. All but
 * the batches come from the summary, all processes of the run together. */
#include "table.h"

#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int summary_prepare(core_source *source, void **made, sw_error_info *info)
{
    (void)made; /* the summary is the source's own */
    return core_source_summary(source, info);
}

static const sw_training *training_of(const core_source *source)
{
    return sw_summary_training(source->summary);
}

/* The function that counts and the one that finds a row, for a list of the summary's training. */
#define TRAINING_LIST(name, type, list)                                                  \
    static uint64_t name##_count(const core_source *source)                              \
    {                                                                                    \
        size_t count;                                                                    \
        (void)list(training_of(source), &count);                                         \
        return count;                                                                    \
    }                                                                                    \
    static const type *name##_row(const core_reader *reader, uint64_t index)             \
    {                                                                                    \
        size_t count;                                                                    \
        return list(training_of(reader->source), &count) + index;                        \
    }

#define TRAINING_TABLE(table)                                                            \
    const core_table_kind core_table_##table = {                                         \
        .name = #table,                                                                  \
        .columns = table##_columns,                                                      \
        .column_count = COUNT(table##_columns),                                          \
        .prepare = summary_prepare,                                                      \
        .count = table##_count,                                                          \
        .at = table##_at,                                                                \
    }

static void put_line(core_cell *cell, uint32_t line)
{
    core_put_integer(cell, line ? line : SW_UNKNOWN);
}

/* NaN is not known. */
static void put_real(core_cell *cell, double value)
{
    if (isnan(value)) {
        core_put_unknown(cell);
    } else {
        core_put_real(cell, value);
    }
}

static void put_mean(core_cell *cell, uint64_t ns, uint64_t calls)
{
    put_real(cell, calls ? (double)ns / (double)calls : NAN);
}

/* File, line and function; three cells. */
static core_cell *put_site(core_cell *cell, const sw_training_site *site)
{
    core_put_text(cell++, site ? site->file : NULL);
    put_line(cell++, site ? site->line : 0);
    core_put_text(cell++, site ? site->function : NULL);
    return cell;
}

/* --- Modules ---------------------------------------------------------------------- */

static const core_column modules_columns[] = {
    {"name", CORE_NAME, false},
    {"class", CORE_NAME, true},
    {"calls", CORE_INTEGER, false},
    {"total_ns", CORE_INTEGER, false},
    {"self_ns", CORE_INTEGER, false},
    {"mean_ns", CORE_REAL, true},
    {"min_ns", CORE_INTEGER, true},
    {"max_ns", CORE_INTEGER, true},
    {"backward_ns", CORE_REAL, true},
    {"backward_calls", CORE_INTEGER, false},
    {"validation_calls", CORE_INTEGER, false},
    {"validation_ns", CORE_INTEGER, false},
    {"parameters", CORE_INTEGER, false},
    {"bytes", CORE_INTEGER, false},
    {"trainable", CORE_INTEGER, false},
    {"dtype", CORE_NAME, true},
    {"root", CORE_TRUTH, false},
    {"loss", CORE_TRUTH, false},
    {"file", CORE_NAME, true},
    {"line", CORE_INTEGER, true},
    {"function", CORE_NAME, true},
};

TRAINING_LIST(modules, sw_training_module, sw_training_modules)

static int modules_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_module *module = modules_row(reader, index);
    core_put_text(cell++, module->name);
    core_put_text(cell++, module->type);
    core_put_count(cell++, module->calls);
    core_put_count(cell++, module->total_ns);
    core_put_count(cell++, module->self_ns);
    put_mean(cell++, module->total_ns, module->calls);
    core_put_integer(cell++, module->min_ns);
    core_put_integer(cell++, module->max_ns);
    put_mean(cell++, module->backward_ns, module->backward_calls);
    core_put_count(cell++, module->backward_calls);
    core_put_count(cell++, module->validation_calls);
    core_put_count(cell++, module->validation_ns);
    core_put_count(cell++, module->parameters);
    core_put_count(cell++, module->bytes);
    core_put_count(cell++, module->trainable);
    core_put_text(cell++, module->dtype);
    core_put_truth(cell++, module->root);
    core_put_truth(cell++, module->loss);
    (void)put_site(cell, module->site);
    return SW_OK;
}

TRAINING_TABLE(modules);

/* --- Loaders ---------------------------------------------------------------------- */

static const core_column loaders_columns[] = {
    {"name", CORE_NAME, true},          {"dataset", CORE_NAME, true},
    {"main", CORE_TRUTH, false},        {"workers", CORE_INTEGER, true},
    {"batch_size", CORE_INTEGER, true}, {"prefetch_factor", CORE_INTEGER, true},
    {"samples", CORE_INTEGER, true},    {"passes", CORE_INTEGER, true},
    {"pin_memory", CORE_TRUTH, true},   {"persistent_workers", CORE_TRUTH, true},
    {"drop_last", CORE_TRUTH, true},    {"shuffled", CORE_TRUTH, true},
    {"iterable", CORE_TRUTH, true},     {"third_party", CORE_TRUTH, true},
    {"batches", CORE_INTEGER, true},    {"waits", CORE_INTEGER, false},
    {"wait_ns", CORE_INTEGER, false},   {"busy_share", CORE_REAL, true},
    {"file", CORE_NAME, true},          {"line", CORE_INTEGER, true},
    {"function", CORE_NAME, true},
};

TRAINING_LIST(loaders, sw_training_loader, sw_training_loaders)

/* What another library's loader does not say is not known. */
static void put_flag(core_cell *cell, const sw_training_loader *loader, unsigned bit)
{
    if (!loader->known || ((loader->bits & SW_LOADER_FOREIGN) && !(loader->bits & bit))) {
        core_put_unknown(cell);
    } else {
        core_put_truth(cell, (loader->bits & bit) != 0);
    }
}

/* The mean over its workers. */
static double busy_share(const sw_training_loader *loader)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < loader->worker_count; i++) {
        if (!isnan(loader->workers[i].busy_share)) {
            sum += loader->workers[i].busy_share;
            known++;
        }
    }
    return known ? sum / (double)known : NAN;
}

static int loaders_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_loader *loader = loaders_row(reader, index);
    static const unsigned bits[] = {SW_LOADER_PIN,       SW_LOADER_PERSISTENT,
                                    SW_LOADER_DROP_LAST, SW_LOADER_SHUFFLED,
                                    SW_LOADER_ITERABLE,  SW_LOADER_FOREIGN};
    core_put_text(cell++, loader->name);
    core_put_text(cell++, loader->dataset);
    core_put_truth(cell++, loader == sw_summary_main_loader(reader->source->summary));
    core_put_integer(cell++, loader->worker_setting);
    core_put_integer(cell++, loader->batch_size);
    core_put_integer(cell++, loader->prefetch_factor);
    core_put_integer(cell++, loader->samples);
    core_put_integer(cell++, loader->passes);
    for (size_t i = 0; i < COUNT(bits); i++) {
        put_flag(cell++, loader, bits[i]);
    }
    core_put_integer(cell++, loader->batches);
    core_put_count(cell++, loader->waits);
    core_put_count(cell++, loader->wait_ns);
    put_real(cell++, busy_share(loader));
    (void)put_site(cell, loader->site);
    return SW_OK;
}

TRAINING_TABLE(loaders);

static const core_column stages_columns[] = {
    {"loader", CORE_NAME, true},      {"worker", CORE_INTEGER, true},
    {"kind", CORE_NAME, true},        {"name", CORE_NAME, true},
    {"calls", CORE_INTEGER, false},   {"total_ns", CORE_INTEGER, false},
    {"self_ns", CORE_INTEGER, false}, {"mean_ns", CORE_REAL, true},
    {"min_ns", CORE_INTEGER, true},   {"max_ns", CORE_INTEGER, true},
    {"cpu_ns", CORE_INTEGER, true},   {"share", CORE_REAL, true},
};

TRAINING_LIST(stages, sw_training_stage, sw_training_stages)

static int stages_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_stage *stage = stages_row(reader, index);
    core_put_text(cell++, stage->loader);
    core_put_integer(cell++, stage->worker == SW_NO_WORKER ? SW_UNKNOWN : stage->worker);
    core_put_text(cell++, sw_stage_kind_name(stage->kind));
    core_put_text(cell++, stage->name);
    core_put_count(cell++, stage->calls);
    core_put_count(cell++, stage->ns);
    core_put_count(cell++, stage->self_ns);
    put_mean(cell++, stage->ns, stage->calls);
    core_put_integer(cell++, stage->min_ns);
    core_put_integer(cell++, stage->max_ns);
    core_put_integer(cell++, stage->cpu_ns);
    put_real(cell++, stage->share);
    return SW_OK;
}

TRAINING_TABLE(stages);

/* --- Compilations and waits ------------------------------------------------------- */

static const core_column compilations_columns[] = {
    {"function", CORE_NAME, true},     {"reason", CORE_NAME, true},
    {"file", CORE_NAME, true},         {"line", CORE_INTEGER, true},
    {"again", CORE_TRUTH, false},      {"compilations", CORE_INTEGER, false},
    {"total_ns", CORE_INTEGER, false}, {"trace_ns", CORE_INTEGER, true},
    {"lower_ns", CORE_INTEGER, true},  {"backend_ns", CORE_INTEGER, true},
};

TRAINING_LIST(compilations, sw_training_compilation, sw_training_compilations)

static int compilations_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_compilation *compiled = compilations_row(reader, index);
    const bool apart = compiled->trace_ns || compiled->lower_ns || compiled->backend_ns;
    core_put_text(cell++, compiled->function);
    core_put_text(cell++, compiled->reason);
    core_put_text(cell++, compiled->file);
    put_line(cell++, compiled->line);
    core_put_truth(cell++, compiled->again);
    core_put_count(cell++, compiled->compilations);
    core_put_count(cell++, compiled->ns);
    core_put_integer(cell++, apart ? compiled->trace_ns : SW_UNKNOWN);
    core_put_integer(cell++, apart ? compiled->lower_ns : SW_UNKNOWN);
    core_put_integer(cell++, apart ? compiled->backend_ns : SW_UNKNOWN);
    return SW_OK;
}

TRAINING_TABLE(compilations);

static const core_column waits_columns[] = {
    {"call", CORE_NAME, true},
    {"file", CORE_NAME, true},
    {"line", CORE_INTEGER, true},
    {"kind", CORE_NAME, true},
    {"calls", CORE_INTEGER, false},
    {"total_ns", CORE_INTEGER, false},
    {"bytes", CORE_INTEGER, false},
    {"max_ns", CORE_INTEGER, false},
    {"pinned_calls", CORE_INTEGER, false},
    {"non_blocking", CORE_TRUTH, false},
};

TRAINING_LIST(waits, sw_training_wait, sw_training_waits)

static int waits_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_wait *wait = waits_row(reader, index);
    core_put_text(cell++, wait->call);
    core_put_text(cell++, wait->file);
    put_line(cell++, wait->line);
    core_put_text(cell++, sw_training_wait_kind_name(wait->kind));
    core_put_count(cell++, wait->calls);
    core_put_count(cell++, wait->ns);
    core_put_count(cell++, wait->bytes);
    core_put_count(cell++, wait->max_ns);
    core_put_count(cell++, wait->pinned_calls);
    core_put_truth(cell++, wait->non_blocking);
    return SW_OK;
}

TRAINING_TABLE(waits);

/* --- Sites, settings, operators, epochs ------------------------------------------- */

static const core_column sites_columns[] = {
    {"what", CORE_NAME, true},     {"class", CORE_NAME, true},
    {"file", CORE_NAME, true},     {"line", CORE_INTEGER, true},
    {"function", CORE_NAME, true},
};

TRAINING_LIST(sites, sw_training_site, sw_training_sites)

static int sites_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_site *site = sites_row(reader, index);
    core_put_text(cell++, sw_training_site_what_name(site->what));
    core_put_text(cell++, site->object);
    (void)put_site(cell, site);
    return SW_OK;
}

TRAINING_TABLE(sites);

static const core_column settings_columns[] = {
    {"what", CORE_NAME, true},
    {"name", CORE_NAME, true},
    {"text", CORE_NAME, true},
    {"number", CORE_REAL, true},
};

TRAINING_LIST(settings, sw_training_setting, sw_training_settings)

static int settings_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_training_setting *setting = settings_row(reader, index);
    core_put_text(cell++, setting->what);
    core_put_text(cell++, setting->name);
    core_put_text(cell++, setting->text);
    put_real(cell++, setting->number);
    return SW_OK;
}

TRAINING_TABLE(settings);

static const core_column operators_columns[] = {
    {"name", CORE_NAME, true},         {"shapes", CORE_NAME, true},
    {"phase", CORE_NAME, true},        {"device", CORE_NAME, true},
    {"calls", CORE_INTEGER, false},    {"self_ns", CORE_INTEGER, false},
    {"total_ns", CORE_INTEGER, false}, {"bytes", CORE_INTEGER, false},
    {"flops", CORE_INTEGER, false},
};

TRAINING_LIST(operators, sw_training_operator, sw_training_operators)

static int operators_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    static const char *const devices[] = {"cpu", "gpu"};
    const sw_training_operator *op = operators_row(reader, index);
    core_put_text(cell++, op->name);
    core_put_text(cell++, op->shapes);
    core_put_text(cell++, sw_phase_name(op->phase));
    core_put_text(cell++, op->device < COUNT(devices) ? devices[op->device] : NULL);
    core_put_count(cell++, op->calls);
    core_put_count(cell++, op->self_ns);
    core_put_count(cell++, op->total_ns);
    core_put_count(cell++, op->bytes);
    core_put_count(cell++, op->flops);
    return SW_OK;
}

TRAINING_TABLE(operators);

static const core_column epochs_columns[] = {
    {"epoch", CORE_INTEGER, false},
    {"steps", CORE_INTEGER, false},
    {"duration_ns", CORE_INTEGER, false},
    {"first_batch_ns", CORE_INTEGER, true},
};

static uint64_t epochs_count(const core_source *source)
{
    return sw_summary_epoch_count(source->summary);
}

static int epochs_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_summary_epoch *epoch =
        sw_summary_get_epoch(reader->source->summary, (size_t)index);
    core_put_count(cell++, epoch->epoch);
    core_put_count(cell++, epoch->steps);
    core_put_count(cell++, epoch->ns);
    core_put_integer(cell++, epoch->first_batch_ns);
    return SW_OK;
}

TRAINING_TABLE(epochs);

/* --- Batches ---------------------------------------------------------------------- */

static const core_column batch_columns[] = {
    {"loader", CORE_NAME, true},
    {"batch", CORE_INTEGER, false},
    {"epoch", CORE_INTEGER, false},
    {"index", CORE_INTEGER, false},
    {"worker", CORE_INTEGER, true},
    {"step", CORE_INTEGER, true},
    {"begin_ns", CORE_INTEGER, false},
    {"duration_ns", CORE_INTEGER, false},
    {"fetch_begin_ns", CORE_INTEGER, true},
    {"fetch_end_ns", CORE_INTEGER, true},
    {"put_ns", CORE_INTEGER, true},
    {"receive_ns", CORE_INTEGER, true},
    {"pin_ns", CORE_INTEGER, true},
    {"cpu_ns", CORE_INTEGER, true},
    {"bytes", CORE_INTEGER, true},
    {"queue_depth", CORE_INTEGER, false},
    {"thread", CORE_NAME, true},
    {"pid", CORE_INTEGER, false},
};

/* A moment in ns; 0 did not happen. */
static void put_moment(core_cell *cell, const sw_trace *trace, uint64_t ticks)
{
    core_put_integer(cell, ticks ? sw_timeline_mono_ns(sw_trace_timeline(trace), ticks)
                                 : SW_UNKNOWN);
}

static void batch_row(core_reader *reader, const sw_event *event, core_cell *cell)
{
    const sw_record_batch *batch = (const sw_record_batch *)(const void *)event->record;
    const sw_trace *trace = core_reader_trace(reader, event);
    core_put_bytes(cell++, core_name_of(trace, batch->head.id));
    core_put_count(cell++, batch->batch);
    core_put_count(cell++, batch->epoch);
    core_put_count(cell++, batch->index);
    core_put_integer(cell++, batch->worker == SW_NO_WORKER ? SW_UNKNOWN : batch->worker);
    core_put_integer(cell++, batch->step);
    core_put_count(cell++, event->begin_ns);
    core_put_count(cell++,
                   event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0);
    const uint64_t moments[] = {batch->fetch_begin, batch->fetch_end, batch->put,
                                batch->receive, batch->pin};
    for (size_t i = 0; i < COUNT(moments); i++) {
        put_moment(cell++, trace, moments[i]);
    }
    core_put_integer(cell++, batch->cpu_ns ? batch->cpu_ns : SW_UNKNOWN);
    core_put_integer(cell++, batch->bytes ? batch->bytes : SW_UNKNOWN);
    core_put_count(cell++, batch->queue_depth);
    core_put_text(cell++, core_thread_of(trace, event->thread));
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
}

const core_table_kind core_table_batches = {
    .name = "batches",
    .columns = batch_columns,
    .column_count = COUNT(batch_columns),
    .events = 1u << SW_RECORD_BATCH,
    .from_event = batch_row,
};
