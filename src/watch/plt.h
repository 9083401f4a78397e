/* Functions in the place of others, in every object that is loaded: the entries through which an
 * object calls what it imports (its global offset table) are made to lead to a replacement.
 *
 * Glossary: a *hook* is a function's name, what is called in its place, and where the function
 * itself is put. A *set* is the hooks of one client. Sets may hook the same name: the one that was
 * added last is called first, and its `original` is the one before it.
 *
 * What this cannot see: calls inside the C library, calls of an object to its own functions, raw
 * system calls, and pointers to a function that were taken before (dlsym, tables of pointers in
 * data). A pointer that was taken meanwhile, from an entry or by asking an object for it (dlsym with a
 * handle, as ctypes does), leads to the replacement for ever; hence replacements
 * work also when their set is removed, and just call the original. */
#ifndef SW_WATCH_PLT_H
#define SW_WATCH_PLT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>

struct sw__plt_hook {
    const char *name;
    void *replacement;
    void
        *original; /* set before the first call can come; read it with sw__plt_original */
    /* The function itself, where objects may be bound to different ones of this name; else NULL, and the name says it. Entries
     * that are not bound yet are then left alone, for nobody knows which one they will lead to. */
    void *function;
};

/* Caller-owned, of static storage: it is never forgotten. */
struct sw__plt_set {
    struct sw__plt_hook *hooks;
    size_t count;
    bool added;     /* ours */
    bool inherited; /* ours: it was added when the process was forked */
};

/* What the hook replaces now; other sets come and go. */
static inline void *sw__plt_original(struct sw__plt_hook *hook)
{
    return __atomic_load_n(&hook->original, __ATOMIC_RELAXED);
}

/* The function that a call of this name reaches when nobody has hooked it; NULL: there is none. */
void *sw__plt_resolve(const char *name);
/* Patches every object that is there. A hook whose function nobody defines is left out; its
 * original stays NULL. Other threads may run meanwhile. 0 (also when it was added before),
 * SW_EUNSUPPORTED on other processors, SW_ELIMIT with too many names. Keeps errno. */
int sw__plt_add(struct sw__plt_set *set, sw_error_info *info);
/* The same for several, for which objects are gone through once; all of them or none. */
int sw__plt_add_all(struct sw__plt_set *const *sets, size_t count, sw_error_info *info);
/* The same where waiting could be for ever, as in `sw__plt_asking`: SW_ELIMIT also while another thread is at it. */
int sw__plt_try_add(struct sw__plt_set *set);
/* Makes all entries lead past the set again. Calls may still be inside a replacement. In the child of a fork entries stay as
 * they were inherited, and lead through replacements that have nothing to do. */
void sw__plt_remove(struct sw__plt_set *set);
void sw__plt_remove_all(struct sw__plt_set *const *sets, size_t count);
/* Called while a set is added, with no lock held, before an object is asked for a function (dlsym): who has loaded one does that
 * next. On the thread that asks, so it may do what that may: wait for the linker. NULL: nobody wants to know. */
extern void (*_Atomic sw__plt_asking)(void);
/* Patches objects that were loaded since. Cheap when there are none, gives up at once when another
 * thread is at it. It is called by itself when a program calls dlsym (as one does after dlopen)
 * while a set is added; clients call it now and then for the others. Keeps errno.
 *
 * In the child of a fork it does nothing but for dlsym: a thread of the parent may have been in the middle of loading or
 * unloading an object, and the lock of the linker is then held for ever by nobody. */
void sw__plt_refresh(void);
/* No thread of ours holds the lock of the linker while a process forks. */
struct sw__watcher;
extern const struct sw__watcher sw__plt_watcher;

struct sw__plt_counts {
    uint64_t objects; /* looked at */
    uint64_t entries; /* that lead to a replacement because of us, over all time */
    uint64_t refused; /* entries whose page could not be made writable */
};
void sw__plt_counts(struct sw__plt_counts *out);

/* ---- between plt.c and plt_object.c ---- */

/* A hooked name and what its entries may hold. */
#define SW__PLT_MEMBERS 6
struct sw__plt_name {
    const char *name;
    void *function;                 /* the real one */
    bool bound;                     /* only entries that hold it already are meant */
    void *top;                      /* what entries shall hold */
    void *members[SW__PLT_MEMBERS]; /* every replacement that entries may hold */
    unsigned member_count;
};
struct dl_phdr_info;
struct sw__plt_entry {
    void **slot;
    struct sw__plt_name *name;
    bool undefined; /* the object does not define the function itself */
    bool relro;     /* the page is read-only after relocation */
    bool
        own_code; /* the value points into the object: a function of its own, or not bound yet */
    bool raw; /* as in the file: the linker has not been here yet */
};
/* Calls `visit` for every entry of the object for a function whose name `wanted` knows. */
typedef struct sw__plt_name *(*sw__plt_wanted)(const char *name);
typedef void (*sw__plt_visit)(const struct sw__plt_entry *entry, void *arg);
void sw__plt_object(const struct dl_phdr_info *object, sw__plt_wanted wanted,
                    sw__plt_visit visit, void *arg);
/* Whether the address lies in a segment of the object. */
bool sw__plt_holds(const struct dl_phdr_info *object, const void *address);
/* Stores into the entry. false: its page could not be made writable. */
bool sw__plt_store(const struct sw__plt_entry *entry, void *value);
/* Whether relocations of this processor are known. */
bool sw__plt_supported(void);

#endif
