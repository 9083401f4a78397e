/* What was counted while questions were answered quickly: see quick.h. */
#include "quick.h"
#include "brief.h"
#include "stages.h"

core_quick core_quick_now;

/* What was asked last while another one was waited for. */
static struct {
    const PyObject *iterator;
    core_loader_pass *pass;
} seen;

void core_quick_saw(const PyObject *iterator, core_loader_pass *pass)
{
    seen.iterator = iterator;
    seen.pass = pass;
}

void core_quick_stop(void)
{
    core_quick_now.iterator = NULL;
    core_quick_now.owner = NULL;
    core_quick_now.nested = NULL;
}

void core_quick_put(void)
{
    core_quick *quick = &core_quick_now;
    if (quick->pass && quick->batches) {
        core_loader_got_many(quick->pass, quick->batches, quick->wait_ticks,
                             quick->shortest, quick->longest);
    }
    quick->batches = 0;
    quick->wait_ticks = quick->longest = 0;
    quick->shortest = UINT64_MAX;
}

void core_quick_forget(const core_loader_pass *pass)
{
    if (seen.pass == pass) {
        core_quick_saw(NULL, NULL);
    }
    if (core_quick_now.pass == pass) {
        core_quick_stop();
        core_quick_put();
        core_quick_now.pass = NULL;
    }
}

void core_quick_settle(void)
{
    core_quick *quick = &core_quick_now;
    if (!quick->state || !core_quick_is_mine(quick)) {
        return;
    }
    train_state *state = quick->state;
    core_quick_stop();
    quick->state = NULL;
    core_quick_put();
    quick->pass = NULL;
    if (state->recording != sw_recording_number()) {
        quick->waiting = false;
        return;
    }
    core_train_settle(state, quick);
    quick->waiting = false;
}

void core_quick_begin(train_state *state, PyObject *iterator, core_loader_pass *pass)
{
    core_quick *quick = &core_quick_now;
    core_quick_settle();
    if (quick->state && quick->state->recording == state->recording) {
        return; /* Another thread's, which has not been told yet. */
    }
    const uint32_t left = core_brief_left(state), untold = core_train_untold();
    sw_later *later = left > 0 && untold > 0 ? core_train_later(state) : NULL;
    if (!later) {
        return;
    }
    *quick = (core_quick){
        .iterator = iterator,
        .owner = state->owner,
        .nested = pass ? NULL : seen.iterator,
        .later = later,
        .state = state,
        .left = left < untold ? left : untold,
        .by_call = state->by_call,
        .shortest = UINT64_MAX,
        .pass = pass ? pass : seen.pass,
    };
    core_quick_saw(NULL, NULL);
}

/* --- For iterators that are not torch's ------------------------------------------------------- */

static PyObject *quick_wait(PyObject *Py_UNUSED(module), PyObject *iterator)
{
    return PyBool_FromLong(core_quick_wait(iterator));
}

static PyObject *quick_got(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(iterator))
{
    if (!core_quick_got()) {
        core_train_got();
    }
    Py_RETURN_NONE;
}

static PyObject *quick_begin(PyObject *Py_UNUSED(module), PyObject *iterator)
{
    if (core_brief && core_train_self) {
        core_quick_begin(core_train_self, iterator, NULL);
    }
    Py_RETURN_NONE;
}

static PyMethodDef quick_methods[] = {
    {"quick_wait", quick_wait, METH_O,
     PyDoc_STR(
         "Whether that this iterator is asked for a batch needs no more than this.")},
    {"quick_got", quick_got, METH_O, PyDoc_STR("Then: the batch is there.")},
    {"quick_begin", quick_begin, METH_O,
     PyDoc_STR("A batch of this iterator, which is none of torch's, has been got.")},
    {NULL, NULL, 0, NULL},
};

int core_quick_add(PyObject *module)
{
    return PyModule_AddFunctions(module, quick_methods);
}
