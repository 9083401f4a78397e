/* The module stepwatch._core: what it consists of, and its state. */
#include "brief.h"
#include "core.h"
#include "modules.h"
#include "resting.h"
#include "training.h"
#include "unseen.h"
#include "user_code.h"
#include "waits.h"

static int (*const parts[])(PyObject *module) = {
    core_control_add,   core_section_add,     core_decorator_add, core_iterators_add,
    core_functions_add, core_lines_add,       core_sampler_add,   core_run_add,
    core_process_add,   core_user_code_add,   core_records_add,   core_training_add,
    core_options_add,   core_jit_calls_add,   core_jit_waits_add, core_loops_add,
    core_modules_add,   core_stages_add,      core_waits_add,     core_tensor_calls_add,
    core_collector_add, core_timed_print_add, core_operators_add, core_torch_events_add,
    core_compare_add,   core_history_add,     core_bench_add,     core_monitor_add,
    core_memory_add,    core_profiler_add,    core_charts_add,    core_tensorboard_add,
    core_judge_add,     core_unseen_add,      core_brief_add,     core_resting_add,
    core_quick_add,
};

int core_type_add(PyObject *module, enum core_slot slot, PyType_Spec *spec)
{
    core_state *state = PyModule_GetState(module);
    state->slot[slot] = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!state->slot[slot]) {
        return -1;
    }
    return PyModule_AddType(module, (PyTypeObject *)state->slot[slot]);
}

static int core_exec(PyObject *module)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i](module) != 0) {
            return -1;
        }
    }
    return 0;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);
    for (size_t i = 0; i < CORE_SLOTS; i++) {
        Py_VISIT(state->slot[i]);
    }
    for (size_t i = 0; i < sizeof state->recent / sizeof state->recent[0]; i++) {
        Py_VISIT(state->recent[i].section);
    }
    return 0;
}

static int core_clear(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    for (size_t i = 0; i < CORE_SLOTS; i++) {
        Py_CLEAR(state->slot[i]);
    }
    for (size_t i = 0; i < sizeof state->recent / sizeof state->recent[0]; i++) {
        Py_CLEAR(state->recent[i].name);
        Py_CLEAR(state->recent[i].section);
    }
    return 0;
}

static void core_free(void *module)
{
    core_clear(module);
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stepwatch._core",
    .m_doc = "The recorder, as Python sees it.",
    .m_size = sizeof(core_state),
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&core_module);
}
