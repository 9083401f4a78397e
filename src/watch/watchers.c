/* The table of watchers that the recorder tells what happens (record/watchers.h). */
#include "record/watchers.h"
#include "watch/heap_watcher.h"
#include "watch/io.h"
#include "watch/monitor.h"
#include "watch/plt.h"
#include "watch/source_gpu.h"
#include <stddef.h>

const struct sw__watcher *const sw__watchers[] = {
    &sw__monitor_watcher, &sw__gpu_watcher, &sw__heap_watcher,
    &sw__io_watcher,      &sw__plt_watcher, NULL,
};

void sw_watch_resume(void)
{
    sw__watchers_resume();
}
