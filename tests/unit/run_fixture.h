/* Runs that tests compose: a folder with the traces of a run, and its summary. */
#ifndef RUN_FIXTURE_H
#define RUN_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/analyze.h>

#include "trace_builder.h"

/* A folder for the traces of one test. */
struct fixture {
    char folder[64];
    unsigned files;
    sw_run *run;
    sw_summary *summary;
};

static inline struct fixture *fixture_new(void)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    strcpy(fixture->folder, "/tmp/test_analyze_XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    return fixture;
}

static inline void write_trace(struct fixture *fixture, struct tb *tb)
{
    char path[128];
    size_t size;
    tb_seal(tb);
    tb->super.file_id[0] = (uint8_t)('a' + fixture->files);
    snprintf(path, sizeof path, "%s/%u.stepwatch", fixture->folder, fixture->files++);
    for (size_t i = 0; i < tb->block_count;
         i++) { /* blocks carry part of the file's id */
        memcpy(&tb->blocks[i].head->file_id, tb->super.file_id,
               sizeof tb->blocks[i].head->file_id);
    }
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(path, bytes, size);
    free(bytes);
    tb_free(tb);
}

static inline void write_run_json(struct fixture *fixture, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/run.json", fixture->folder);
    tb_write(path, text, strlen(text));
}

static inline const sw_summary *summarise(struct fixture *fixture)
{
    sw_error_info info = {0};
    assert_int_equal(sw_run_open(&fixture->run, fixture->folder, &info), 0);
    assert_int_equal(sw_summary_create(&fixture->summary, fixture->run, &info), 0);
    return fixture->summary;
}

static inline void fixture_free(struct fixture *fixture)
{
    char command[128];
    sw_summary_free(fixture->summary);
    sw_run_free(fixture->run);
    snprintf(command, sizeof command, "rm -r %s", fixture->folder);
    assert_int_equal(system(command), 0);
    free(fixture);
}

static inline bool has_note(const sw_summary *summary, const char *part)
{
    const char *note;
    for (size_t i = 0; (note = sw_summary_note(summary, i)) != NULL; i++) {
        if (strstr(note, part)) {
            return true;
        }
    }
    return false;
}

static inline void call(struct tb *tb, struct tb_lane *lane, uint32_t section,
                        uint64_t at, uint64_t ns)
{
    tb_begin(tb, lane, section, at);
    tb_end(tb, lane, at + ns, 0);
}

/* Appends a step record with an epoch and what its thread used (0 of both: not read); the lane's totals follow. */
static inline void step_counted(struct tb *tb, struct tb_lane *lane, uint64_t begin,
                                const uint64_t *phases, uint32_t epoch, unsigned flags,
                                uint64_t cpu_ns, uint64_t run_delay_ns, uint32_t faults)
{
    sw_record_step record = {.head = {.kind = SW_RECORD_STEP,
                                      .units = sizeof record / SW_RECORD_UNIT,
                                      .flags = (uint16_t)(SW_RECORD_INTERVAL | flags),
                                      .ticks = begin},
                             .number = lane->file->steps,
                             .epoch = epoch,
                             .unit = SW_STEP_BATCH,
                             .domain = lane->domain,
                             .usage_steps = cpu_ns || run_delay_ns,
                             .cpu_ns = cpu_ns,
                             .run_delay_ns = run_delay_ns,
                             .minor_faults = faults};
    uint64_t total = 0;
    for (size_t i = 0; i < SW_PHASE_SLOTS; i++) {
        record.phase_ticks[i] = phases[i];
        total += phases[i];
    }
    record.end = begin + total;
    tb_record(tb, lane->thread, &record);
    struct sw__fmt_lane *file = lane->file;
    file->steps++;
    if (flags & SW_STEP_INCOMPLETE) {
        file->steps_incomplete++;
        return;
    }
    file->step_ticks += total;
    file->step_min = total < file->step_min ? total : file->step_min;
    file->step_max = total > file->step_max ? total : file->step_max;
    for (size_t i = 0; i < SW_PHASE_SLOTS; i++) {
        file->phase_ticks[i] += phases[i];
    }
    tb_count(tb, file->step_hist, total);
}

static inline void step_used(struct tb *tb, struct tb_lane *lane, uint64_t begin,
                             const uint64_t *phases, uint32_t epoch, unsigned flags,
                             uint64_t cpu_ns, uint64_t run_delay_ns)
{
    step_counted(tb, lane, begin, phases, epoch, flags, cpu_ns, run_delay_ns, 0);
}

static inline void step(struct tb *tb, struct tb_lane *lane, uint64_t begin,
                        const uint64_t *phases, uint32_t epoch, unsigned flags)
{
    step_used(tb, lane, begin, phases, epoch, flags, 0, 0);
}

/* Old time over new, when so much of it goes and the rest gets faster by 15 % of that share. */
static inline double relieved(double before, double saved)
{
    const double share = saved / before;
    return 1 / ((1 - share) * (1 - 0.15 * share));
}

#endif
