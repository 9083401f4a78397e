#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <stepwatch/history.h>

#include "base/compiler.h"
#include "history/sqlite_calls.h"

static struct sw__sqlite calls;
static bool loaded;

static void load(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } wanted[] = {
#define WANTED(name) {"sqlite3_" #name, offsetof(struct sw__sqlite, name)},
        SW__SQLITE_CALLS(WANTED)
#undef WANTED
    };
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    loaded = library != NULL;
    for (size_t i = 0; loaded && i < SW__COUNTOF(wanted); i++) {
        void *found = dlsym(library, wanted[i].name);
        memcpy((char *)&calls + wanted[i].offset, &found, sizeof found);
        loaded = found != NULL;
    }
}

const struct sw__sqlite *sw__sqlite(sw_error_info *info)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!loaded) {
        sw_error_set(info, SW_EUNSUPPORTED,
                     "the history needs SQLite, and there is no libsqlite3.so.0 here; "
                     "Debian's package is libsqlite3-0");
        return NULL;
    }
    return &calls;
}

int sw_history_check(sw_error_info *info)
{
    return sw__sqlite(info) ? SW_OK : SW_EUNSUPPORTED;
}
