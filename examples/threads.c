/* Two threads: one makes batches, the other trains on them; a bounded queue lies between.
 *
 * Sections belong to the thread that opened them, so the report shows both sides: how long the
 * worker took to make a batch, how long it waited for room, and how long the training thread
 * waited for data. Here the worker is the slower one. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <stepwatch/stepwatch.h>

enum { BATCHES = 400, BATCH_SIZE = 4096, ROOM = 4 };

struct batch {
    float values[BATCH_SIZE];
};

/* 0 ≤ made - taken ≤ ROOM; batch number n lies at n % ROOM. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned made, taken;
    struct batch slots[ROOM];
};

static void batch_make(struct batch *batch, uint32_t *state)
{
    SW_SCOPE("make_batch");
    for (int i = 0; i < BATCH_SIZE; i++) {
        float sum = 0.0F;
        for (int j = 0; j < 16; j++) {
            *state = *state * 1664525U + 1013904223U;
            sum += (float)(*state >> 8);
        }
        batch->values[i] = sum / (16.0F * 16777216.0F);
    }
}

/* Waits until one more batch may be made, and returns its slot. */
static struct batch *queue_reserve(struct queue *queue)
{
    SW_SCOPE("wait_for_room");
    pthread_mutex_lock(&queue->lock);
    while (queue->made - queue->taken == ROOM) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    struct batch *slot = &queue->slots[queue->made % ROOM];
    pthread_mutex_unlock(&queue->lock);
    return slot;
}

/* Waits for the next batch. It stays in the queue until queue_release. */
static const struct batch *queue_next(struct queue *queue)
{
    SW_SCOPE("data_wait");
    pthread_mutex_lock(&queue->lock);
    while (queue->made == queue->taken) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    const struct batch *slot = &queue->slots[queue->taken % ROOM];
    sw_counter("queued", (double)(queue->made - queue->taken));
    pthread_mutex_unlock(&queue->lock);
    return slot;
}

static void queue_advance(struct queue *queue, unsigned *counter)
{
    pthread_mutex_lock(&queue->lock);
    (*counter)++;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void *worker_main(void *argument)
{
    struct queue *queue = argument;
    uint32_t state = 1;
    sw_thread_name("loader");
    for (int i = 0; i < BATCHES; i++) {
        struct batch *batch = queue_reserve(queue);
        batch_make(batch, &state);
        queue_advance(queue, &queue->made);
    }
    return NULL;
}

/* Fits the mean of the values by gradient steps. */
static float train_on(const struct batch *batch, float estimate)
{
    SW_SCOPE("train");
    float gradient = 0.0F;
    for (int i = 0; i < BATCH_SIZE; i++) {
        gradient += estimate - batch->values[i];
    }
    return estimate - 0.1F * gradient / BATCH_SIZE;
}

int main(void)
{
    static struct queue queue = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    sw_init(NULL);
    sw_thread_name("training");
    pthread_t worker;
    if (pthread_create(&worker, NULL, worker_main, &queue) != 0) {
        fprintf(stderr, "threads: no thread could be started\n");
        return EXIT_FAILURE;
    }
    float estimate = 0.0F;
    for (int i = 0; i < BATCHES; i++) {
        sw_step_begin();
        const struct batch *batch = queue_next(&queue);
        estimate = train_on(batch, estimate);
        queue_advance(&queue, &queue.taken);
        sw_step_end();
    }
    pthread_join(worker, NULL);
    sw_shutdown();
    printf("mean %.4f\n", (double)estimate);
    return estimate > 0.49F && estimate < 0.51F ? EXIT_SUCCESS : EXIT_FAILURE;
}
