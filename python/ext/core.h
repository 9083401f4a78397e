/* What the files of the extension share. */
#ifndef STEPWATCH_EXT_CORE_H
#define STEPWATCH_EXT_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* What is rare is kept out of what is not. A few bytes of every thread are found without a call. */
#if defined(__GNUC__)
#define CORE_NOINLINE __attribute__((noinline))
#define CORE_THREAD_SHARED                                                               \
    __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))
#define CORE_THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
#else
#define CORE_NOINLINE
#define CORE_THREAD_SHARED _Thread_local
#define CORE_THREAD_LOCAL static _Thread_local
#endif

/* Objects that a module owns. */
enum core_slot {
    CORE_SECTION_TYPE,
    CORE_SECTIONS, /* dict: (name, phase) -> section: one object each, made once */
    CORE_DECORATED_TYPE,
    CORE_GENERATOR_TYPE,
    CORE_STEPS_TYPE,
    CORE_STEP_TYPE,
    CORE_DATA_TYPE,
    CORE_BATCHES_TYPE,
    CORE_EPOCHS, /* dict: passes over iterables, see loop_epoch */
    CORE_FUNCTIONS_TYPE,
    CORE_FUNCTIONS_ENGINE, /* has the interpreter's profiling hooks */
    CORE_LINES_TYPE,
    CORE_SAMPLE_TYPE,
    CORE_RUN_TYPE,
    CORE_TABLE_TYPE,
    CORE_TABLE_ITERATOR_TYPE,
    CORE_STAGE_TYPE,
    CORE_TIMED_TYPE,
    CORE_TIMED_METHOD_TYPE,
    CORE_PASS_TYPE,
    CORE_COMPARISON_TYPE,
    CORE_MEMORY_TYPE,
    CORE_MEMORY_SNAPSHOT_TYPE,
    CORE_PROFILER_TYPE,
    CORE_PROFILER_SECTION_TYPE,
    CORE_PROFILER_LOOP_TYPE,
    CORE_PROFILER_PASS_TYPE,
    CORE_PROFILER_STEP_TYPE,
    CORE_CHART_TYPE,
    CORE_EVENTS_TYPE,
    CORE_UNSEEN_TYPE,
    CORE_STEPPED_TYPE,
    CORE_SLOTS
};

/* A section found by the address of its name; both are references. */
typedef struct core_recent {
    PyObject *name;
    PyObject *section;
} core_recent;

/* State of one module object; every interpreter has its own. */
typedef struct core_state {
    PyObject *slot[CORE_SLOTS];
    core_recent recent[64];
} core_state;

/* A string as UTF-8 that any text has, lone surrogates included: what a program says about itself
 * must not be able to raise. `owner` keeps the bytes alive; release it with core_text_release. */
typedef struct core_text {
    const char *data;
    Py_ssize_t length;
    PyObject *owner;
} core_text;

/* 0, or -1 with TypeError (not a string) or MemoryError set. */
int core_text_get(PyObject *object, const char *what, core_text *out);
void core_text_release(core_text *text);

/* Forgets the exception that is set, if any: one of code of ours that failed and does not matter. Ctrl-C that reached the
 * program while such code ran is not forgotten, it comes once more, in the program's own code. */
void core_error_forget(void);

/* The parts of the module, one file each: add types and functions. 0, or -1 with an exception set. */
int core_monitor_add(PyObject *module);
int core_control_add(PyObject *module);
int core_section_add(PyObject *module);
int core_decorator_add(PyObject *module);
int core_iterators_add(PyObject *module);
int core_functions_add(PyObject *module);
int core_lines_add(PyObject *module);
int core_sampler_add(PyObject *module);
int core_run_add(PyObject *module);
int core_compare_add(PyObject *module);
int core_process_add(PyObject *module);
int core_records_add(PyObject *module);
int core_options_add(PyObject *module);
int core_jit_calls_add(PyObject *module);
int core_jit_waits_add(PyObject *module);
int core_loops_add(PyObject *module);
int core_stages_add(PyObject *module);
int core_collector_add(PyObject *module);
int core_timed_print_add(PyObject *module);
int core_operators_add(PyObject *module);
int core_torch_events_add(PyObject *module);
int core_history_add(PyObject *module);
int core_judge_add(PyObject *module);
int core_bench_add(PyObject *module);
int core_quick_add(PyObject *module);
int core_memory_add(PyObject *module);
int core_profiler_add(PyObject *module);
int core_charts_add(PyObject *module);
int core_tensorboard_add(PyObject *module);

/* Allocations of the whole recording, if the settings ask for them: from its start; what was sampled goes into the trace
 * before it ends; off after it. The first is 0, or -1 with an exception set. With the GIL. */
int core_memory_began(void);
void core_memory_flush(void);
/* What was sampled goes into the trace when it is time: where a step ended, with the GIL; and from any thread, which asks the
 * main thread to do it: true, it was asked. */
void core_memory_step(void);
bool core_memory_tick(void);
void core_memory_ended(void);

/* Whether STEPWATCH_ENABLED says off: then nothing of the program is hooked, whatever it asks for. */
bool core_is_off(void);

/* What allocators of frameworks say of themselves: where a step ended, and before a recording ends. With the GIL; they leave
 * exceptions as they are. */
void core_allocators_step(void);
void core_allocators_flush(void);

/* Who holds tensors with their graphs, where memory has grown. With the GIL, while no step is open; it leaves exceptions as
 * they are. `ends`: a loop over batches or the recording does, so it is time. */
bool core_holders_due(void);
void core_holders_look(bool ends);

/* What goes with a recording: the sampler, if the settings ask for it, and facts about this Python. The first is 0, or -1
 * with an exception set that is not ours to hide (KeyboardInterrupt); the second leaves none. */
int core_process_began(PyObject *module);
void core_process_ends(PyObject *module);

/* The line profiler's totals: into the recording before it ends; counted anew when one begins. With the GIL. */
void core_lines_sync(void);
void core_lines_rebase(void);

/* The counts of the stages of data loaders: into the recording before it ends. With the GIL. */
void core_stages_flush(void);

/* Where programs wait for what JAX computes: into the recording before it ends. With the GIL. */
void core_jit_waits_flush(void);

/* Puts what running function profiles have counted into the trace, before it ends. */
void core_functions_flush(PyObject *module);

/* Makes a type of the module, keeps it in the module's slot and adds it under its name. 0 or -1. */
int core_type_add(PyObject *module, enum core_slot slot, PyType_Spec *spec);

/* Objects in variables of the process are those of the main interpreter. Another one, which may have a lock and memory of its
 * own, must not so much as count a reference to them. */
static inline bool core_in_main_interpreter(void)
{
    return PyInterpreterState_Get() == PyInterpreterState_Main();
}

#endif
