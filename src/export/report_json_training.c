/* report.json: what is known of models, loaders, compilations, waits, settings and operators. */
#include <string.h>

#include "export/json_put.h"
#include "export/report_parts.h"

#define NO_HOOKS "No framework was watched in this run."

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

static double mean_ms(uint64_t ns, uint64_t calls)
{
    return ratio(ns, calls) / 1e6;
}

static void put_line(sw_writer *w, uint32_t line)
{
    put_uint(w, "line", line ? line : SW_UNKNOWN);
}

static void put_site(sw_writer *w, const sw_training_site *site)
{
    sw_json_key(w, "site");
    if (!site) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_string(w, "file", site->file);
    put_line(w, site->line);
    put_string(w, "function", site->function);
    sw_json_object_end(w);
}

/* --- modules --- */

/* Of a whole that does not always contain it: modules are called outside steps too. */
static double share_of(uint64_t ns, uint64_t whole)
{
    return ns <= whole ? ratio(ns, whole) : whole ? 1 : NAN;
}

static void put_module(sw_writer *w, const sw_training_module *module, uint64_t steps,
                       uint64_t steps_ns)
{
    sw_json_object_begin(w);
    put_string(w, "name", module->name);
    put_string(w, "class", module->type);
    put_uint(w, "calls", module->calls);
    put_ms(w, "total_ms", module->total_ns);
    put_ms(w, "self_ms", module->self_ns);
    put_double(w, "mean_ms", mean_ms(module->total_ns, module->calls));
    put_ms(w, "min_ms", module->min_ns);
    put_ms(w, "max_ms", module->max_ns);
    put_double(w, "self_ms_per_step", mean_ms(module->self_ns, steps));
    put_double(w, "share", share_of(module->self_ns, steps_ns));
    put_double(w, "backward_ms", mean_ms(module->backward_ns, module->backward_calls));
    put_uint(w, "backward_calls", module->backward_calls);
    put_uint(w, "validation_calls", module->validation_calls);
    put_ms(w, "validation_ms", module->validation_ns);
    put_uint(w, "parameters", module->parameters);
    put_uint(w, "bytes", module->bytes);
    put_uint(w, "trainable", module->trainable);
    put_string(w, "dtype", module->dtype);
    put_bool(w, "root", module->root);
    put_bool(w, "loss", module->loss);
    put_site(w, module->site);
    sw_json_object_end(w);
}

void sw__json_modules(sw_writer *w, const sw_summary *summary)
{
    size_t count;
    uint64_t steps;
    uint64_t steps_ns;
    const sw_training_module *modules =
        sw_training_modules(sw_summary_training(summary), &count);
    if (count == 0) {
        put_missing(w, "modules", "No module of a model was recorded.");
        return;
    }
    sw_summary_looked_steps(summary, &steps, &steps_ns);
    sw_json_key(w, "modules");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        put_module(w, &modules[i], steps, steps_ns);
    }
    sw_json_array_end(w);
}

static void put_dtypes(sw_writer *w, const sw_training *training)
{
    size_t modules;
    size_t count;
    (void)sw_training_modules(training, &modules);
    const sw_training_dtype *dtypes = sw_training_dtypes(training, &count);
    if (modules == 0) {
        put_missing(w, "dtypes", "No module of a model was recorded.");
        return;
    }
    sw_json_key(w, "dtypes");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "dtype", dtypes[i].dtype);
        put_uint(w, "modules", dtypes[i].modules);
        put_uint(w, "parameters", dtypes[i].parameters);
        put_uint(w, "bytes", dtypes[i].bytes);
        put_uint(w, "trainable", dtypes[i].trainable);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

/* --- loaders --- */

static void put_flag(sw_writer *w, const char *key, const sw_training_loader *loader,
                     unsigned bit)
{
    sw_json_key(w, key);
    if (loader->known && !(loader->bits & SW_LOADER_FOREIGN && !(loader->bits & bit))) {
        sw_json_bool(w, (loader->bits & bit) != 0);
    } else {
        sw_json_null(w); /* what another library's loader does is not known */
    }
}

static void put_workers(sw_writer *w, const sw_training_loader *loader)
{
    sw_json_key(w, "per_worker");
    sw_json_array_begin(w);
    for (size_t i = 0; i < loader->worker_count; i++) {
        const sw_training_worker *worker = &loader->workers[i];
        sw_json_object_begin(w);
        put_uint(w, "worker", worker->worker);
        put_double(w, "busy_share", worker->busy_share);
        put_double(w, "getitem_ms", mean_ms(worker->getitem_ns, worker->getitem_calls));
        put_double(w, "collate_ms", mean_ms(worker->collate_ns, worker->collate_calls));
        put_uint(w, "batches", worker->batches);
        put_ms(w, "busy_ms", worker->busy_ns);
        put_ms(w, "idle_ms", worker->idle_ns);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_stages(sw_writer *w, const sw_training_loader *loader)
{
    sw_json_key(w, "stages");
    sw_json_array_begin(w);
    for (size_t i = 0; i < loader->stage_count; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        sw_json_object_begin(w);
        put_string(w, "name", stage->name);
        /* Waiting is seen at every batch. */
        const uint64_t seen = stage->waits ? loader->batches : loader->looked;
        put_double(w, "ms", seen == SW_UNKNOWN ? NAN : mean_ms(stage->self_ns, seen));
        put_double(w, "share", stage->share);
        put_string(w, "kind", sw_stage_kind_name(stage->kind));
        put_uint(w, "calls", stage->calls);
        put_ms(w, "total_ms", stage->ns);
        put_ms(w, "self_ms", stage->self_ns);
        put_double(w, "mean_ms", mean_ms(stage->ns, stage->calls));
        put_ms(w, "min_ms", stage->min_ns);
        put_ms(w, "max_ms", stage->max_ns);
        put_ms(w, "cpu_ms", stage->cpu_ns);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_loader(sw_writer *w, const sw_training_loader *loader, double wait_share)
{
    sw_json_object_begin(w);
    put_uint(w, "workers", loader->worker_setting);
    put_uint(w, "batch_size", loader->batch_size);
    put_flag(w, "pin_memory", loader, SW_LOADER_PIN);
    put_flag(w, "persistent_workers", loader, SW_LOADER_PERSISTENT);
    put_uint(w, "prefetch_factor", loader->prefetch_factor);
    put_double(w, "wait_share", wait_share);
    put_workers(w, loader);
    put_stages(w, loader);
    put_string(w, "name", loader->name);
    put_string(w, "dataset", loader->dataset);
    put_uint(w, "samples", loader->samples);
    put_flag(w, "drop_last", loader, SW_LOADER_DROP_LAST);
    put_flag(w, "shuffled", loader, SW_LOADER_SHUFFLED);
    put_flag(w, "iterable", loader, SW_LOADER_ITERABLE);
    put_flag(w, "third_party", loader, SW_LOADER_FOREIGN);
    put_uint(w, "passes", loader->passes);
    put_uint(w, "batches", loader->batches);
    put_uint(w, "waits", loader->waits);
    put_ms(w, "wait_ms", loader->wait_ns);
    put_site(w, loader->site);
    sw_json_object_end(w);
}

void sw__json_loader(sw_writer *w, const sw_summary *summary)
{
    const sw_training_loader *loader = sw_summary_main_loader(summary);
    size_t count;
    (void)sw_training_loaders(sw_summary_training(summary), &count);
    if (!loader) {
        put_missing(w, "loader",
                    count ? "The program waited for none of its loaders."
                          : "No data loader was recorded.");
        return;
    }
    sw_json_key(w, "loader");
    put_loader(w, loader, sw_summary_wait_share(summary));
}

static void put_loaders(sw_writer *w, const sw_summary *summary)
{
    size_t count;
    const sw_training_loader *loaders =
        sw_training_loaders(sw_summary_training(summary), &count);
    const sw_training_loader *chosen = sw_summary_main_loader(summary);
    if (count == 0) {
        put_missing(w, "loaders", "No data loader was recorded.");
        return;
    }
    sw_json_key(w, "loaders");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        put_loader(w, &loaders[i],
                   &loaders[i] == chosen ? sw_summary_wait_share(summary) : NAN);
    }
    sw_json_array_end(w);
}

/* --- compilations --- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_function(const sw_training_compilation *a,
                          const sw_training_compilation *b)
{
    return a->line == b->line && same_text(a->function, b->function) &&
           same_text(a->file, b->file);
}

/* `count` compilations of one function. The reason is that of the longest of its recompilations, else of the first. */
static void put_function(sw_writer *w, const sw_training_compilation *of, size_t count)
{
    uint64_t compilations = 0;
    uint64_t again = 0;
    double ns = 0;
    double stages[3] = {0};
    const sw_training_compilation *telling = of;
    for (size_t i = 0; i < count; i++) {
        compilations += of[i].compilations;
        again += of[i].again ? of[i].compilations : 0;
        ns += (double)of[i].ns;
        stages[0] += (double)of[i].trace_ns;
        stages[1] += (double)of[i].lower_ns;
        stages[2] += (double)of[i].backend_ns;
        telling = of[i].again && !telling->again ? &of[i] : telling;
    }
    const bool apart = stages[0] + stages[1] + stages[2] > 0;
    sw_json_object_begin(w);
    put_string(w, "function", of->function);
    put_string(w, "file", of->file);
    put_line(w, of->line);
    put_uint(w, "compilations", compilations);
    put_double(w, "seconds", ns / 1e9);
    put_string(w, "reason", telling->reason);
    put_uint(w, "recompilations", again);
    put_double(w, "trace_s", apart ? stages[0] / 1e9 : NAN);
    put_double(w, "lower_s", apart ? stages[1] / 1e9 : NAN);
    put_double(w, "backend_s", apart ? stages[2] / 1e9 : NAN);
    sw_json_key(w, "reasons");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "reason", of[i].reason);
        put_bool(w, "again", of[i].again);
        put_uint(w, "compilations", of[i].compilations);
        put_double(w, "seconds", (double)of[i].ns / 1e9);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

static void put_compile(sw_writer *w, const sw_training *training)
{
    size_t count;
    const sw_training_compilation *list = sw_training_compilations(training, &count);
    if (!sw_training_recorded(training)) {
        put_missing(w, "compile", NO_HOOKS);
        return;
    }
    uint64_t compilations = 0;
    uint64_t again = 0;
    double ns = 0;
    for (size_t i = 0; i < count; i++) {
        compilations += list[i].compilations;
        again += list[i].again ? list[i].compilations : 0;
        ns += (double)list[i].ns;
    }
    sw_json_key(w, "compile");
    sw_json_object_begin(w);
    put_uint(w, "count", compilations);
    put_double(w, "seconds", ns / 1e9);
    put_uint(w, "recompilations", again);
    sw_json_key(w, "functions");
    sw_json_array_begin(w);
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = begin + 1;
        while (end < count && same_function(&list[begin], &list[end])) {
            end++;
        }
        put_function(w, &list[begin], end - begin);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

/* --- waits, sites, settings, operators --- */

/* Begins an array; false: nothing was watched, and the part says so. */
static bool begin_list(sw_writer *w, const char *key, const sw_training *training)
{
    if (!sw_training_recorded(training)) {
        put_missing(w, key, NO_HOOKS);
        return false;
    }
    sw_json_key(w, key);
    sw_json_array_begin(w);
    return true;
}

static void put_waits(sw_writer *w, const sw_training *training)
{
    size_t count;
    const sw_training_wait *waits = sw_training_waits(training, &count);
    if (!begin_list(w, "waits", training)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "call", waits[i].call);
        put_string(w, "file", waits[i].file);
        put_line(w, waits[i].line);
        put_string(w, "kind", sw_training_wait_kind_name(waits[i].kind));
        put_uint(w, "calls", waits[i].calls);
        put_ms(w, "ms", waits[i].ns);
        put_uint(w, "bytes", waits[i].bytes);
        put_ms(w, "max_ms", waits[i].max_ns);
        put_uint(w, "pinned_calls", waits[i].pinned_calls);
        put_bool(w, "non_blocking", waits[i].non_blocking);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_sites(sw_writer *w, const sw_training *training)
{
    size_t count;
    const sw_training_site *sites = sw_training_sites(training, &count);
    if (!begin_list(w, "sites", training)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "what", sw_training_site_what_name(sites[i].what));
        put_string(w, "class", sites[i].object);
        put_string(w, "file", sites[i].file);
        put_line(w, sites[i].line);
        put_string(w, "function", sites[i].function);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_settings(sw_writer *w, const sw_training *training)
{
    size_t count;
    const sw_training_setting *settings = sw_training_settings(training, &count);
    if (!begin_list(w, "settings", training)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "what", settings[i].what);
        put_string(w, "name", settings[i].name);
        put_string(w, "text", settings[i].text);
        put_double(w, "number", settings[i].number);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_operators(sw_writer *w, const sw_training *training)
{
    size_t count;
    const sw_training_operator *operators = sw_training_operators(training, &count);
    if (count == 0) {
        put_missing(w, "operators",
                    "Operators are recorded on demand only (--operators).");
        return;
    }
    sw_json_key(w, "operators");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        const sw_training_operator *op = &operators[i];
        sw_json_object_begin(w);
        put_string(w, "name", op->name);
        put_string(w, "shapes", op->shapes);
        put_string(w, "phase", sw_phase_name(op->phase));
        put_string(w, "device", op->device == 0 ? "cpu" : op->device == 1 ? "gpu" : NULL);
        put_uint(w, "calls", op->calls);
        put_ms(w, "self_ms", op->self_ns);
        put_ms(w, "total_ms", op->total_ns);
        put_uint(w, "bytes", op->bytes);
        put_uint(w, "flops", op->flops);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

void sw__json_training(sw_writer *w, const sw_summary *summary)
{
    const sw_training *training = sw_summary_training(summary);
    put_loaders(w, summary);
    put_dtypes(w, training);
    put_compile(w, training);
    put_waits(w, training);
    put_sites(w, training);
    put_settings(w, training);
    put_operators(w, training);
}
