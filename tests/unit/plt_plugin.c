/* A library whose calls are patched; built several times, each time linked in another way. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

#ifdef PLUGIN_DEFINES
/* A function of its own with the name of a hooked one. */
__attribute__((visibility("default"))) pid_t getppid(void)
{
    return 77;
}
#endif

pid_t plugin_ppid(void);
int plugin_missing(void);
void *plugin_dlsym(void *handle, const char *name);
void *plugin_next(void);
void *plugin_taken(void);

pid_t plugin_ppid(void)
{
    return getppid();
}

/* Is not defined anywhere. */
extern int sw_test_nowhere(void) __attribute__((weak));

int plugin_missing(void)
{
    return sw_test_nowhere ? sw_test_nowhere() : -1;
}

void *plugin_dlsym(void *handle, const char *name)
{
    return dlsym(handle, name);
}

/* The answer depends on where the call comes from. */
void *plugin_next(void)
{
    return dlsym(RTLD_NEXT, "plugin_next");
}

void *plugin_taken(void)
{
    return (void *)getppid;
}
