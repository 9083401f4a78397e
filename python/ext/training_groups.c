/* Loaders, and whatever else passes are made over: they are known by their address, and by a weak reference where they can have
 * one. */
#include "training_groups.h"

PyObject *core_weak_of(PyObject *object, PyObject *callback)
{
    PyObject *weak = PyWeakref_NewRef(object, callback);
    if (!weak) {
        PyErr_Clear();
    }
    return weak;
}

static bool weak_is(PyObject *weak, const void *object)
{
    if (!weak) {
        return true;
    }
    /* Borrowed, and only compared. */
#if PY_VERSION_HEX >= 0x030d0000
    PyObject *target = NULL;
    if (PyWeakref_GetRef(weak, &target) < 0) {
        PyErr_Clear();
    }
    const bool same = target == object;
    Py_XDECREF(target);
    return same;
#else
    return PyWeakref_GetObject(weak) == object;
#endif
}

train_group *core_group_find(train_groups *groups, const void *object)
{
    for (size_t i = 0; object && i < TRAIN_GROUPS; i++) {
        if (groups->list[i].object == object) {
            return weak_is(groups->list[i].weak, object) ? &groups->list[i] : NULL;
        }
    }
    return NULL;
}

/* Passes over those that were trained on and are gone: where a loader is built for every epoch, a new one goes on from the
 * last. */
static uint32_t passes_before(const train_groups *groups)
{
    uint32_t most = groups->passes;
    for (size_t i = 0; i < TRAIN_GROUPS; i++) {
        const train_group *group = &groups->list[i];
        if (group->kind == GROUP_TRAINS && group->weak && group->passes > most &&
            !weak_is(group->weak, group->object)) {
            most = group->passes;
        }
    }
    return most;
}

train_group *core_group_get(train_groups *groups, PyObject *object)
{
    train_group *group = core_group_find(groups, object);
    if (group) {
        return group;
    }
    size_t at = 0;
    while (at < TRAIN_GROUPS && groups->list[at].object != object) {
        at++;
    }
    if (at == TRAIN_GROUPS) {
        at = groups->newest++ % TRAIN_GROUPS;
    }
    /* What gives way may be the one that had most, and have left its address to this. */
    const uint32_t passes = groups->passes = passes_before(groups);
    group = &groups->list[at];
    Py_CLEAR(group->weak);
    *group = (train_group){
        .object = object, .weak = core_weak_of(object, NULL), .passes = passes};
    return group;
}

enum group_kind core_group_kind(train_groups *groups, const void *object)
{
    const train_group *group = core_group_find(groups, object);
    return group ? group->kind : GROUP_UNKNOWN;
}

void core_groups_clear(train_groups *groups)
{
    for (size_t i = 0; i < TRAIN_GROUPS; i++) {
        Py_CLEAR(groups->list[i].weak);
    }
}
