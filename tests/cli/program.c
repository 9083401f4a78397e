/* A program for the tests of the command: it records a little, then does what its arguments say.
 *
 *   steps N          N steps with sections; the 8th takes longer in data
 *   work N           40 steps; their data takes N thousand rounds of counting, their forward 200
 *   print TEXT       TEXT on stdout
 *   complain TEXT    TEXT on stderr
 *   echo             copies stdin to stdout
 *   exit N           exits with that code
 *   raise N          dies from that signal
 *   wait             prints "ready", then the number of each signal that arrives; exits at SIGTERM
 *   fork N           N children, each with a section, which are waited for
 *   names TEXT       a section of that name
 *   families N       sections family_0 … family_N-1, each with a section below it
 *   samples N        what a sampler at 100 Hz would leave: N samples of fit:12 and N of fit:12 > "a;b", all
 *                    running, and 3 N of idle, waiting; 0 leaves a sampler that saw nothing */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/stepwatch.h>

static void spend(long microseconds)
{
    struct timespec begin;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000 +
                 (now.tv_nsec - begin.tv_nsec) / 1000 <
             microseconds);
}

static void run_steps(int count)
{
    for (int i = 0; i < count; i++) {
        sw_epoch((uint32_t)(i / 10));
        sw_step_begin();
        SW_SECTION("data") {
            spend(i == 7 ? 20000 : 100);
        }
        SW_SECTION("forward") {
            SW_SECTION("layer") {
                spend(50);
            }
        }
        SW_SECTION("backward") {
            spend(100);
        }
        sw_counter("loss", 1.0 / (i + 1));
        sw_update();
        sw_step_end();
    }
}

/* The same work whatever the clock says. */
static void count(long thousands)
{
    volatile unsigned value = 1;
    for (long i = 0; i < thousands * 1000; i++) {
        value = value * 1664525u + 1013904223u;
    }
}

static void run_work(long thousands)
{
    for (int i = 0; i < 40; i++) {
        sw_step_begin();
        SW_SECTION("data") {
            count(thousands);
        }
        SW_SECTION("forward") {
            count(200);
        }
        sw_step_end();
    }
}

static void wait_for_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&set, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("ready\n");
    fflush(stdout);
    for (int number = 0; number != SIGTERM;) {
        if (sigwait(&set, &number) == 0) {
            printf("signal %d\n", number);
            fflush(stdout);
        }
    }
}

static void fork_children(int count)
{
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            SW_SECTION("child") {
                spend(100);
            }
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static void open_families(int count)
{
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "family_%d", i);
        sw_section *section = sw_section_get(name);
        sw_begin(section);
        SW_SECTION("member") {
            spend(10);
        }
        sw_end(section);
    }
}

static uint32_t name_of(const char *text)
{
    return sw_name(text, strlen(text));
}

static uint32_t put_row(sw_row row)
{
    if (sw_row_put(0, &row) == 0) {
        exit(99);
    }
    return row.index;
}

static uint32_t put_code(const char *name, uint32_t line)
{
    return put_row(
        (sw_row){.table = SW_TABLE_CODE,
                 .key = {name_of("/src/train.py"), name_of(name), line, name_of(name)}});
}

static void put_samples(unsigned count)
{
    SW_SECTION("sampled") {
        spend(100);
    }
    put_row((sw_row){.table = SW_TABLE_SAMPLER,
                     .key = {100},
                     .value = {5 * count, 5 * count, count / 10, 0, 1000}});
    if (count == 0) {
        return;
    }
    uint32_t fit = put_code("Net.fit", 10);
    uint32_t nasty = put_code("a;b", 20);
    uint32_t idle = put_code("idle", 30);
    uint32_t context = put_row((sw_row){.table = SW_TABLE_CONTEXT,
                                        .key = {0, name_of("sampled"), SW_PHASE_INHERIT},
                                        .value = {2 * count, 3 * count}});
    uint32_t root = put_row((sw_row){.table = SW_TABLE_STACK,
                                     .flags = SW_ROW_IN_CONTEXT,
                                     .key = {context, fit, 12},
                                     .value = {count}});
    put_row((sw_row){
        .table = SW_TABLE_STACK, .key = {root, nasty, 21}, .value = {count, 0, count}});
    put_row((sw_row){
        .table = SW_TABLE_STACK, .key = {root, idle, 31}, .value = {0, 3 * count}});
}

int main(int argc, char **argv)
{
    sw_init(NULL);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(word, "echo") == 0) {
            for (int c; (c = getchar()) != EOF;) {
                putchar(c);
            }
            continue;
        }
        if (strcmp(word, "wait") == 0) {
            wait_for_signals();
            continue;
        }
        i++;
        if (strcmp(word, "steps") == 0) {
            run_steps(atoi(value));
        } else if (strcmp(word, "work") == 0) {
            run_work(atol(value));
        } else if (strcmp(word, "print") == 0) {
            printf("%s\n", value);
        } else if (strcmp(word, "complain") == 0) {
            fprintf(stderr, "%s\n", value);
        } else if (strcmp(word, "exit") == 0) {
            exit(atoi(value));
        } else if (strcmp(word, "raise") == 0) {
            fflush(stdout);
            raise(atoi(value));
        } else if (strcmp(word, "fork") == 0) {
            fork_children(atoi(value));
        } else if (strcmp(word, "samples") == 0) {
            put_samples((unsigned)atoi(value));
        } else if (strcmp(word, "families") == 0) {
            open_families(atoi(value));
        } else if (strcmp(word, "names") == 0) {
            sw_section *section = sw_section_get(value);
            sw_begin(section);
            spend(100);
            sw_end(section);
        }
    }
    return 0;
}
