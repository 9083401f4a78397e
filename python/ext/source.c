#include "source.h"
#include "table.h"

#include <stdlib.h>

int core_source_open(core_source **out, const char *path, sw_error_info *info)
{
    *out = NULL;
    core_source *source = calloc(1, sizeof *source);
    if (!source) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    source->references = 1;
    pthread_mutex_init(&source->lock, NULL);
    for (size_t i = 0; i < CORE_TABLES; i++) {
        source->rows[i] = UINT64_MAX;
    }
    int error = path ? sw_run_open(&source->run, path, info) : SW_OK;
    if (!error && source->run) {
        source->trace_count = sw_run_count(source->run);
        source->traces = calloc(source->trace_count + 1, sizeof *source->traces);
        if (!source->traces) {
            error = sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
        }
        for (size_t i = 0; !error && i < source->trace_count; i++) {
            source->traces[i] = sw_run_trace(source->run, i);
        }
    }
    if (error) {
        core_source_release(source);
        return error;
    }
    *out = source;
    return SW_OK;
}

core_source *core_source_retain(core_source *source)
{
    __atomic_add_fetch(&source->references, 1, __ATOMIC_RELAXED);
    return source;
}

void core_source_release(core_source *source)
{
    if (!source || __atomic_sub_fetch(&source->references, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    for (size_t i = 0; i < CORE_TABLES; i++) {
        if (source->made[i]) {
            core_tables[i]->discard(source->made[i]);
        }
    }
    sw_findings_free(source->findings);
    sw_summary_free(source->summary);
    sw_run_free(source->run);
    free(source->traces);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

void core_source_lock(core_source *source)
{
    pthread_mutex_lock(&source->lock);
}

void core_source_unlock(core_source *source)
{
    pthread_mutex_unlock(&source->lock);
}

int core_source_summary(core_source *source, sw_error_info *info)
{
    return source->summary ? SW_OK
                           : sw_summary_create(&source->summary, source->run, info);
}

int core_source_findings(core_source *source, sw_error_info *info)
{
    return source->findings
               ? SW_OK
               : sw_findings_of_summary(&source->findings, source->summary, info);
}
