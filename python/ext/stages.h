/* Stages of producing a batch: what times them, as the objects that stand for the program's own see it. */
#ifndef STEPWATCH_EXT_STAGES_H
#define STEPWATCH_EXT_STAGES_H

#include "core.h"
#include "section.h"
#include "ticks.h"
#include <stdbool.h>
#include <stepwatch/stepwatch.h>

/* A row of the table STAGE that grows. The counts are of recording `recording`; they go into the trace now and then. */
typedef struct core_stage {
    PyObject_HEAD PyObject *loader; /* exactly str, like the name */
    PyObject *name;
    sw_section *section; /* whose time the stage is; NULL: of whoever calls */
    int phase;           /* of the section */
    uint32_t worker;
    uint32_t kind; /* enum sw_stage_kind */
    uint32_t recording;
    uint32_t loader_id, name_id;
    uint64_t calls, ticks, shortest, longest;
    uint64_t cpu_ns, cpu_ticks; /* of the calls whose CPU time was read */
    uint64_t last;              /* ticks of the last call */
    uint64_t begin, end, cpu;   /* of the last call: ticks, and ns or 0 */
    uint64_t handle, due;
    struct core_stage *next, **back; /* all stages of the process */
} core_stage;

/* One run of a stage. */
typedef struct core_stage_run {
    uint64_t begin;
    uint64_t cpu_ns; /* 0: not read */
    bool open;       /* the section is */
} core_stage_run;

/* Open while something is recorded. */
extern sw_section *core_stage_gate;

void core_stage_begin(core_stage *stage, core_stage_run *run);
/* `result`: what the call returned; NULL means that it failed, unless there was nothing more to give. A pending
 * exception stays as it is. */
void core_stage_end(core_stage *stage, const core_stage_run *run, const PyObject *result);
/* Counts a call from one tick to another, of something that is recorded. */
void core_stage_add(core_stage *stage, uint64_t begin, uint64_t end);
/* Counts several calls at once, which took from one tick to another together. */
void core_stage_add_many(core_stage *stage, uint64_t calls, uint64_t begin, uint64_t end);
/* Counts several calls that took these ticks together, and each between those. */
void core_stage_add_sum(core_stage *stage, uint64_t calls, uint64_t ticks,
                        uint64_t shortest, uint64_t longest);
/* Whether its calls take so little, on average and lately, that timing each would matter. */
bool core_stage_is_short(const core_stage *stage);
/* Transforms may call each other; only the outermost counts. Whether this thread is in one. */
bool core_stage_inside(void);
/* The stages of the batch that this thread is making: a dict, borrowed; NULL: it makes none. */
PyObject *core_stage_context(void);
PyObject *core_stage_context_set(PyObject *context);

/* Calls what stands behind something of ours, as if nothing were between. */
PyObject *core_call_through(PyObject *function, PyObject *const *args, size_t nargsf,
                            PyObject *names);

/* What stands for a fetcher of torch's has its dataset exchanged from outside: it shall look at it again. Other objects are left alone. */
void core_timed_anew(PyObject *object);

int core_timed_add(PyObject *module);
int core_loader_pass_add(PyObject *module);

#endif
