/* The monitor's sources over files of the test's own, good ones and damaged ones. */
#include "watch_util.h"

#include <sys/wait.h>
#include <time.h>

#include "watch/cgroup.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"

static void numbers_and_fields(void **state)
{
    (void)state;
    const char *at = "  12 18446744073709551614 18446744073709551615 -3";
    uint64_t number = 0;
    assert_true(sw__proc_number(&at, &number));
    assert_int_equal(number, 12);
    assert_true(sw__proc_number(&at, &number));
    assert_true(number == UINT64_MAX - 1);
    assert_false(sw__proc_number(&at, &number)); /* is taken for unknown */
    const char *minus = " -3";
    assert_false(sw__proc_number(&minus, &number));
    assert_int_equal(sw__proc_nth("1 22 333", 2), 333);
    assert_true(sw__proc_nth("1 22 333", 3) == SW__UNKNOWN);
    assert_true(sw__proc_nth("", 0) == SW__UNKNOWN);
    const char *text =
        "VmSwap:\t  12 kB\nThreads:\t7\nnr_throttled 4\nnr_throttled_x 9\nbad:\n";
    assert_int_equal(sw__proc_field(text, "VmSwap:"), 12);
    assert_int_equal(sw__proc_field(text, "Threads:"), 7);
    assert_int_equal(sw__proc_field(text, "nr_throttled"), 4);
    assert_true(sw__proc_field(text, "nr") == SW__UNKNOWN);
    assert_true(sw__proc_field(text, "bad:") == SW__UNKNOWN);
    assert_true(sw__proc_field(text, "Swap:") ==
                SW__UNKNOWN); /* not at a line's beginning */
    assert_true(isnan(sw__proc_value(SW__UNKNOWN, 2)));
    assert_true(sw__proc_value(3, 2) == 6);
}

static void the_process(void **state)
{
    (void)state;
    put_file("/proc/self/statm", "5000 300 100 5 0 900 0\n");
    struct watching *watching = watch(&sw__source_process);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/self/statm", "5000 400 100 5 0 900 0\n");
    look(watching, 0);
    put_file("/proc/self/statm", "5000 x\n");
    look(watching, 0);
    look(watching, SW_LOOK_LAST);
    seen(watching);
    const double page = (double)sysconf(_SC_PAGESIZE);
    const sw_monitor_series *rss = series_of(watching, "process.rss");
    assert_int_equal(rss->known, 2); /* unknown is not 0 */
    assert_value(rss->first, 300 * page);
    assert_value(rss->last, 400 * page);
    assert_value(rss->all.min, 300 * page);
    assert_value(series_of(watching, "process.rss_anon")->all.max, 300 * page);
    assert_int_equal(series_of(watching, "process.cpu_user")->known, 4);
    assert_true(series_of(watching, "process.switches_voluntary")->growth >= 0);
    forget(watching);
}

static void what_it_read_and_wrote(void **state)
{
    (void)state;
    put_file("/proc/self/io", "rchar: 1000000\nwchar: 20\nsyscr: 300000\nsyscw: 4\n"
                              "read_bytes: 4096\nwrite_bytes: 8192\n");
    struct watching *watching = watch(&sw__source_io);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/self/io", "rchar: 1000500\nwchar: 120\nsyscr: 300009\n"
                              "read_bytes: 4096\nwrite_bytes: 12288\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "process.written")->growth, 100);
    assert_value(series_of(watching, "process.storage_read")->growth, 0);
    assert_value(series_of(watching, "process.storage_written")->growth, 4096);
    /* What the monitor itself reads is left out. */
    assert_value(series_of(watching, "process.read_calls")->growth, 8);
    assert_true(series_of(watching, "process.read")->growth < 500);
    /* The line is gone: what it was is not 0 and not known. */
    assert_true(isnan(series_of(watching, "process.write_calls")->growth));
    assert_int_equal(series_of(watching, "process.write_calls")->known, 1);
    forget(watching);
}

static void cores_of_the_machine(void **state)
{
    (void)state;
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    put_file("/proc/stat", "cpu  100 10 50 1000 5 3 2 7 0 0\n"
                           "cpu0 60 10 30 500 5 3 2 7 0 0\ncpu3 40 0 20 500 0 0 0 0 0 0\n"
                           "intr 1 2 3\n");
    struct watching *watching = watch(&sw__source_cpus);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/stat", "cpu  150 10 60 1100 5 3 2 17 0 0\n"
                           "cpu0 60 10 30 500 5 3 2 7 0 0\ncpu3 90 0 30 500 0\ncpux 3\n");
    look(watching, 0);
    put_file("/proc/stat", "cpu  150 10 60\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "system.cpu")->growth, 60 * tick);
    assert_value(series_of(watching, "system.cpu_user")->growth, 50 * tick);
    assert_value(series_of(watching, "system.cpu_system")->growth, 10 * tick);
    assert_value(series_of(watching, "system.steal")->growth, 10 * tick);
    assert_value(series_of(watching, "core.0.cpu")->growth, 0);
    assert_value(series_of(watching, "core.3.cpu")->growth, 60 * tick);
    assert_null(sw_monitor_find(watching->monitor, "core.1.cpu"));
    assert_int_equal(sw_monitor_get_seen(watching->monitor, 0)->failed, 1);
    forget(watching);
}

static void load_and_memory(void **state)
{
    (void)state;
    put_file("/proc/loadavg", "1.50 0.50 0.61 3/512 12345\n");
    put_file("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n"
                              "SwapTotal: 50 kB\nSwapFree: 20 kB\n");
    struct watching *watching = watch(&sw__source_system);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/loadavg", "nonsense");
    put_file("/proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 5 kB\nSwapFree: 20 kB\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "system.load")->last, 1.5);
    assert_int_equal(series_of(watching, "system.load")->known, 1);
    assert_value(series_of(watching, "system.running")->last, 3);
    assert_value(series_of(watching, "system.memory")->last, 1024000);
    assert_int_equal(series_of(watching, "system.memory")->known, 2);
    assert_int_equal(series_of(watching, "system.memory_available")->known, 1);
    assert_value(series_of(watching, "system.swap_used")->last, 30 * 1024);
    assert_int_equal(series_of(watching, "system.swap_used")->known, 1);
    forget(watching);
}

static void pressure_of_the_machine(void **state)
{
    (void)state;
    put_file("/proc/pressure/cpu",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
    put_file("/proc/pressure/io", "some avg10=0.00 total=5\nfull avg10=0.00 total=7\n");
    struct watching *watching = watch(&sw__source_pressure);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/pressure/cpu",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n");
    put_file("/proc/pressure/io", "some avg10=0.00\nfull avg10=0.00 total=\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "pressure.cpu")->growth, 0.5);
    assert_value(series_of(watching, "pressure.io")->first, 5e-6);
    assert_value(series_of(watching, "pressure.io_all")->first, 7e-6);
    assert_int_equal(series_of(watching, "pressure.io_all")->known, 1);
    assert_null(sw_monitor_find(watching->monitor, "pressure.memory"));
    forget(watching);
}

/* That of the process's own control group, also where that of the machine is hidden. */
static void pressure_of_the_group(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "0::/pod/box\n");
    put_file("/sys/fs/cgroup/pod/box/cpu.pressure",
             "some avg10=0.00 total=100\nfull avg10=0.00 total=50\n");
    put_file("/sys/fs/cgroup/pod/box/memory.pressure",
             "some avg10=0.00 total=2000000\nfull avg10=0.00 total=1000000\n");
    put_file("/sys/fs/cgroup/pod/io.pressure", "some avg10=0.00 total=7\n");
    struct watching *watching = watch(&sw__source_pressure);
    look(watching, SW_LOOK_FIRST);
    put_file("/sys/fs/cgroup/pod/box/memory.pressure",
             "some avg10=0.00 total=2500000\nfull avg10=0.00 total=1250000\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "cgroup.pressure_cpu")->first, 100e-6);
    assert_value(series_of(watching, "cgroup.pressure_cpu_all")->last, 50e-6);
    assert_value(series_of(watching, "cgroup.pressure_memory")->growth, 0.5);
    assert_value(series_of(watching, "cgroup.pressure_memory_all")->growth, 0.25);
    assert_value(series_of(watching, "cgroup.pressure_io")->first, 7e-6);
    assert_int_equal(series_of(watching, "cgroup.pressure_io")->known, 2);
    assert_null(sw_monitor_find(watching->monitor, "pressure.cpu"));
    forget(watching);
}

/* Version 2: the quota is that of the group above, and so are its stops. */
static void a_quota_above(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "0::/pod/box\n");
    put_file("/sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
    put_file("/sys/fs/cgroup/pod/box/cpu.stat",
             "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    put_file("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    put_file("/sys/fs/cgroup/pod/cpu.stat",
             "usage_usec 1\nnr_periods 10\nnr_throttled 2\nthrottled_usec 1000000\n");
    put_file("/sys/fs/cgroup/pod/box/memory.current", "5000\n");
    put_file("/sys/fs/cgroup/pod/box/memory.max", "max\n");
    put_file("/sys/fs/cgroup/pod/memory.max", "9000\n");
    struct watching *watching = watch(&sw__source_cgroup);
    look(watching, SW_LOOK_FIRST);
    put_file("/sys/fs/cgroup/pod/cpu.stat",
             "usage_usec 1\nnr_periods 30\nnr_throttled 7\nthrottled_usec 1500000\n");
    put_file("/sys/fs/cgroup/pod/memory.max", "max\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "cgroup.throttled")->growth, 0.5);
    assert_value(series_of(watching, "cgroup.periods")->growth, 20);
    assert_value(series_of(watching, "cgroup.periods_throttled")->growth, 5);
    assert_value(series_of(watching, "cgroup.memory")->last, 5000);
    assert_value(series_of(watching, "cgroup.memory_limit")->last, 9000);
    assert_int_equal(series_of(watching, "cgroup.memory_limit")->known, 1);
    forget(watching);
}

static void version_1(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "3:cpu,cpuacct:/docker/abc\n2:memory:/docker/"
                                  "abc\n1:name=systemd:/\nbroken\n0::/\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
             "nr_periods 1\nnr_throttled 1\nthrottled_time 2000000000\n");
    put_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "123\n");
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    struct watching *watching = watch(&sw__source_cgroup);
    look(watching, SW_LOOK_FIRST);
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "cgroup.throttled")->last, 2);
    assert_value(series_of(watching, "cgroup.memory")->last, 123);
    assert_null(sw_monitor_find(watching->monitor, "cgroup.memory_limit"));
    forget(watching);
}

static void disks_and_interfaces(void **state)
{
    (void)state;
    put_file("/sys/block/sda/stat", "");
    put_file("/sys/block/loop0/stat", "");
    put_file("/proc/diskstats", "   8       0 sda 10 0 100 5 20 0 200 6 0 1000 11\n"
                                "   8       1 sda1 10 0 100 5 20 0 200 6 0 9 11\n"
                                "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
                                "   8 sdb broken\n");
    struct watching *watching = watch(&sw__source_disks);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/diskstats", "   8       0 sda 13 0 108 5 20 0 202 6 0 1500 11\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "disk.sda.reads")->growth, 3);
    assert_value(series_of(watching, "disk.sda.read")->growth, 4096);
    assert_value(series_of(watching, "disk.sda.written")->growth, 1024);
    assert_value(series_of(watching, "disk.sda.busy")->growth, 0.5);
    assert_int_equal(sw_monitor_series_count(watching->monitor), 5);
    forget(watching);

    put_file("/proc/self/net/dev",
             "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes\n"
             "    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
             "  eth0:5402 12 0 0 0 0 0 0 849 8 0 0 0 0 0 0\n"
             "  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n   bad: 1 2\n");
    watching = watch(&sw__source_network);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/self/net/dev", "  eth0:6402 12 0 0 0 0 0 0 859 8 0 0 0 0 0 0\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "net.eth0.received")->growth, 1000);
    assert_value(series_of(watching, "net.eth0.sent")->growth, 10);
    assert_int_equal(sw_monitor_series_count(watching->monitor), 4);
    forget(watching);
}

static void put_child(unsigned pid, const char *name, unsigned ticks, unsigned pages)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    snprintf(text, sizeof text,
             "%u (%s) S %ld 1 1 0 -1 4194304 1 2 3 4 %u 2 3 4 20 0 1 0 5 1000 %u 1\n",
             pid, name, (long)getpid(), ticks, pages);
    put_file(path, text);
}

static void children_and_workers(void **state)
{
    (void)state;
    char path[64];
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    const double page = (double)sysconf(_SC_PAGESIZE);
    put_file("/proc/self/stat", "1 (x) R 0\n");
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    put_file(path, "101 102 104 ");
    put_child(101, "a) R (b", 10, 5);
    put_child(102, "pt_data_worker", 20, 7);
    put_child(103, "python", 30, 11);
    put_file("/proc/104/stat", "104 (cut");
    sw_monitor_worker(103);
    sw_monitor_worker(-1);
    sw_monitor_worker(0);
    struct watching *watching = watch(&sw__source_children);
    look(watching, SW_LOOK_FIRST);
    put_child(101, "a) R (b", 15, 6);
    put_child(103, "python", 130, 11);
    put_file("/proc/102/stat", ""); /* gone */
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "workers.cpu")->growth, 100 * tick);
    assert_value(series_of(watching, "workers.count")->first, 2);
    assert_value(series_of(watching, "workers.count")->last, 1);
    assert_value(series_of(watching, "children.count")->first, 3);
    assert_value(series_of(watching, "children.rss")->first, 23 * page);
    assert_value(series_of(watching, "workers.rss")->last, 11 * page);
    forget(watching);
}

/* A child that takes as much CPU time, and was waited for. */
static pid_t child_of(double seconds)
{
    const pid_t child = fork();
    if (child == 0) {
        while ((double)clock() / CLOCKS_PER_SEC < seconds) {
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

/* What a worker took after it was last seen, or unseen, is not lost, and is not others'. */
static void workers_that_end_between_looks(void **state)
{
    (void)state;
    char path[64];
    put_file("/proc/self/stat", "1 (x) R 0\n");
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    put_file(path, "101 102 ");
    put_child(101, "python", 10, 5);
    put_child(102, "pt_data_worker", 0, 5);
    struct watching *watching = watch(&sw__source_children);
    look(watching, SW_LOOK_FIRST);
    put_file(path, "");
    put_file("/proc/101/stat", "");
    (void)child_of(0.3); /* one of a program's own: 101 has gone, and no worker */
    look(watching, 0);
    sw_monitor_worker(child_of(0.2));
    look(watching, 0);
    put_file("/proc/102/stat", "");
    (void)child_of(0.4); /* it is what 102 did, of which 9 ticks were seen at first */
    look(watching, SW_LOOK_LAST);
    seen(watching);
    const double growth =
        series_of(watching, "workers.cpu")->growth + 9.0 / (double)sysconf(_SC_CLK_TCK);
    assert_true(growth > 0.59 && growth < 0.75);
    forget(watching);
}

static void the_rest_of_the_process(void **state)
{
    (void)state;
    put_file("/proc/self/status", "Name:\tx\nVmSwap:\t      12 kB\nThreads:\t3\n");
    struct watching *watching = watch(&sw__source_status);
    look(watching, SW_LOOK_FIRST);
    put_file("/proc/self/status", "Name:\tx\n");
    look(watching, SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "process.swap")->last, 12288);
    assert_int_equal(series_of(watching, "process.threads")->known, 1);
    forget(watching);

    put_file("/proc/self/smaps_rollup",
             "00400000-7fff ---p\nRss: 9 kB\nPss:      7 kB\n");
    watching = watch(&sw__source_pss);
    look(watching, SW_LOOK_FIRST | SW_LOOK_LAST);
    seen(watching);
    assert_value(series_of(watching, "process.pss")->last, 7168);
    forget(watching);

    put_file("/proc/self/fd/0", "");
    put_file("/proc/self/fd/7", "");
    watching = watch(&sw__source_descriptors);
    look(watching, SW_LOOK_FIRST | SW_LOOK_LAST);
    seen(watching);
    assert_true(series_of(watching, "process.descriptors")->last >= 1);
    assert_true(series_of(watching, "process.descriptors_limit")->last > 0);
    forget(watching);
}

/* Nothing of /proc is there: each source says so once, and nothing is 0. */
static void no_proc(void **state)
{
    (void)state;
    char root[96];
    snprintf(root, sizeof root, "%s/root", ru_folder);
    const struct sw__source_setting setting = {.root = root};
    ru_start((sw_config){0});
    struct sw__looker *looker = sw__looker_open(sw__sources, &setting, 1);
    assert_non_null(looker);
    sw__looker_look(looker, SW_LOOK_FIRST, false, true);
    sw__looker_look(looker, SW_LOOK_LAST, false, true);
    sw__looker_close(looker);
    struct watching *watching = calloc(1, sizeof *watching);
    watching->trace = ru_finish();
    assert_int_equal(sw_monitor_of_trace(&watching->monitor, watching->trace.trace, NULL),
                     0);
    size_t missing = 0;
    for (size_t i = 0; i < sw_monitor_seen_count(watching->monitor); i++) {
        const sw_monitor_seen *source = sw_monitor_get_seen(watching->monitor, i);
        const bool needed = strcmp(source->name, "process") != 0 &&
                            strcmp(source->name, "training") != 0 &&
                            strcmp(source->name, "gpu") != 0 &&
                            strcmp(source->name, "pss") != 0; /* nobody asked for it */
        missing += source->why != NULL;
        if (needed) {
            assert_non_null(source->why);
            assert_int_equal(source->looks, 0);
        }
    }
    assert_true(missing >= 10);
    assert_null(sw_monitor_find(watching->monitor, "process.rss"));
    assert_null(sw_monitor_find(watching->monitor, "system.cpu"));
    assert_non_null(sw_monitor_find(watching->monitor, "process.cpu_user"));
    forget(watching);
}

/* A descriptor that the program closed and used for another file is not closed. */
static void a_descriptor_that_is_not_ours(void **state)
{
    (void)state;
    char root[96];
    snprintf(root, sizeof root, "%s/root", ru_folder);
    put_file("/a", "1\n");
    put_file("/b", "2\n");
    struct sw__proc_file file;
    assert_int_equal(sw__proc_open(&file, root, "/a", NULL, 0), SW_OK);
    const int fd = file.fd;
    FILE *other = fopen(ru_path("root/b"), "r");
    assert_non_null(other);
    assert_true(dup2(fileno(other), fd) == fd);
    sw__proc_close(&file);
    assert_int_equal(file.fd, -1);
    struct stat facts;
    assert_int_equal(fstat(fd, &facts), 0); /* still the program's */
    close(fd);
    fclose(other);
    char why[160] = "";
    assert_int_equal(sw__proc_open(&file, root, "/none", why, sizeof why), SW_EOPEN);
    assert_non_null(strstr(why, "/none cannot be read"));
    char text[8];
    assert_true(sw__proc_read(&file, text, sizeof text) < 0);
}

static void what_there_is_here(void **state)
{
    (void)state;
    sw_monitor_source sources[64];
    const size_t count = sw_monitor_sources(sources, 64);
    assert_true(count >= 13 && count <= 64);
    assert_int_equal(sw_monitor_sources(NULL, 0), count);
    for (size_t i = 0; i < count; i++) {
        assert_true(sources[i].there || sources[i].why[0]);
    }
    assert_string_equal(sources[0].name, "process");
    assert_true(sources[0].there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_fields),
        ru_test(the_process),
        ru_test(what_it_read_and_wrote),
        ru_test(cores_of_the_machine),
        ru_test(load_and_memory),
        ru_test(pressure_of_the_machine),
        ru_test(pressure_of_the_group),
        ru_test(a_quota_above),
        ru_test(version_1),
        ru_test(disks_and_interfaces),
        ru_test(children_and_workers),
        ru_test(workers_that_end_between_looks),
        ru_test(the_rest_of_the_process),
        ru_test(no_proc),
        ru_test(a_descriptor_that_is_not_ours),
        cmocka_unit_test(what_there_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
