/* Calls of modules, as torch's adapter reports them. */
#ifndef STEPWATCH_EXT_MODULES_H
#define STEPWATCH_EXT_MODULES_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>

/* Whether torch computes gradients on this thread; true where nobody says. */
bool core_gradients_wanted(void);
/* What follows a backward is an update that the program writes out, here or on another thread. */
extern bool core_updates_by_hand;
/* Such an update is over, if this thread had one. */
void core_update_claim(void);

/* Whether something of torch compiles: what runs then computes nothing. */
bool core_compiles(void);
/* Whether a module is being trained, by its own word. */
bool core_module_trains(PyObject *module);
/* A module is called: the section that was opened for that, a new reference. NULL: none, perhaps with an exception set. */
PyObject *core_module_begin(PyObject *module);
/* The call is over. An exception that is set stays. */
void core_module_end(PyObject *section, bool failed);
/* An optimizer of which only its updates are counted steps, on this thread; whether it was the outermost one. */
void core_optimizer_begins(void);
bool core_optimizer_ends(void);

/* --- modules_table.c: what is known about an object, by its address ------------------------ */

enum module_flags {
    MODULE_ROOT = 1,
    MODULE_LOSS = 2,
    MODULE_TRAINED = 4, /* was called to be trained */
    MODULE_ONCE = 8,    /* an entry of a type: its instances are not known one by one */
    MODULE_PART = 16,   /* has no sections yet for a call by itself */
    MODULE_JUDGED = 32  /* what it returns goes to a loss that is known */
};

/* Sections are references of the table; NULL: calls are not timed. */
typedef struct module_entry {
    PyObject *object;    /* its address; NULL: the entry is free */
    PyObject *weak;      /* says whether it is still that object */
    PyObject *inner;     /* within another call: no phase of its own, but for losses */
    PyObject *outer;     /* the outermost call */
    PyObject *validates; /* the outermost call, in a validation */
    uint32_t number;     /* what Python calls it */
    uint32_t recording;  /* that has its rows */
    uint32_t
        called; /* calls of models to be trained, when it was last called so; 0: never */
    uint32_t looked; /* how many were trained when last asked whether a part of it was */
    uint32_t flags;
} module_entry;

/* The entry, or NULL. It is good until the next call of Python code. */
module_entry *module_find(const PyObject *object);
/* The entry of the object, new if need be. NULL with an exception set: it cannot be referred to weakly, or there is no
 * memory. */
module_entry *module_entry_of(PyObject *object);
/* Forgets all of them. */
void module_forget(void);
Py_ssize_t module_count(void);

/* --- modules_built.c: where objects were built --------------------------------------------- */

/* Remembers the place in the user's code that builds this object now. */
PyObject *core_module_built(PyObject *module, PyObject *object);
/* (file, line, function) of that place, or None. */
PyObject *core_module_site(PyObject *module, PyObject *object);

/* --- modules_slot.c: how calls of them are seen --------------------------------------------- */

/* module_slots(class, compiler): takes the slots of this class and all below it. */
PyObject *core_module_slots(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* Gives them back. */
PyObject *core_module_slots_back(PyObject *module, PyObject *ignored);
/* An object of this class is being built. */
void core_module_slot_take(PyTypeObject *type);
/* Calls of objects of this class are seen in every step. */
void core_module_slot_stays(PyTypeObject *type);
/* Those of other classes are not, until that is taken back. */
void core_module_slots_rest(bool rest);
/* A step begins: now and then, takes what was made or given back meanwhile. */
void core_module_slots_look(int64_t step);

int core_modules_add(PyObject *module);

#endif
