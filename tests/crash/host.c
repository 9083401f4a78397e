/* A program that knows nothing of the recorder and loads a plugin which does. The plugin is gone again when the
 * thread that recorded in it ends, and when the process does. */
#include "page.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *library;

static void *use_and_unload(void *arg)
{
    uint64_t (*run)(unsigned count);
    *(void **)&run = dlsym(library, "plugin_run");
    *(uint64_t *)arg = run ? run(100) : 0;
    dlclose(library);
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t value = 0;
    pthread_t thread;
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library || pthread_create(&thread, NULL, use_and_unload, &value)) {
        fprintf(stderr, "host: %s\n", dlerror());
        return 1;
    }
    pthread_join(thread, NULL);
    printf("result %016llx\n", (unsigned long long)value);
    return 7;
}
