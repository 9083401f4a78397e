/* Trains a small network to tell ten kinds of points apart, in plain C on one thread, and records
 * where the time of each step goes.
 *
 *     mlp [--epochs N] [--batch N] [--seed N]
 *
 * The network is 64-128-64-10 with ReLU, softmax and cross entropy; it learns by mini-batch SGD with
 * momentum. Recording changes nothing that is computed: the checksum of the weights in the last
 * line is the same with STEPWATCH_ENABLED=0. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/stepwatch.h>

enum {
    FEATURES = 64,
    CLASSES = 10,
    CLUSTERS = 40, /* four of each class, so that no plane separates the classes */
    TRAIN_SAMPLES = 4096,
    TEST_SAMPLES = 1024,
    LAYERS = 3,
    BATCH_MAX = TRAIN_SAMPLES
};
static const size_t widths[LAYERS + 1] = {FEATURES, 128, 64, CLASSES};

static const float learning_rate = 0.000125F;  /* a sample of the batch, within … */
static const float learning_rate_most = 0.02F; /* … this limit */
static const float momentum = 0.9F;
static const float spread = 1.3F; /* of a cluster; their centres lie about 11 apart */
static const double good_accuracy = 0.90;

/* --- Numbers that look random and are the same everywhere ------------------------- */

struct generator {
    uint64_t state;
};

/* SplitMix64. */
static uint64_t next_bits(struct generator *generator)
{
    uint64_t z = generator->state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static size_t next_below(struct generator *generator, size_t limit)
{
    return (size_t)(next_bits(generator) % limit);
}

/* From the open interval (0, 1), so that its logarithm is finite. */
static double next_uniform(struct generator *generator)
{
    return ((double)(next_bits(generator) >> 11) + 0.5) / 9007199254740992.0;
}

static float next_normal(struct generator *generator)
{
    double radius = sqrt(-2.0 * log(next_uniform(generator)));
    return (float)(radius * cos(6.283185307179586 * next_uniform(generator)));
}

/* --- Data ------------------------------------------------------------------------- */

struct dataset {
    size_t count;
    float *features; /* count × FEATURES */
    uint8_t *labels;
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "mlp: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static struct dataset dataset_make(size_t count, const float *centres,
                                   struct generator *generator)
{
    struct dataset data = {
        .count = count,
        .features = allocate(count * FEATURES, sizeof(float)),
        .labels = allocate(count, sizeof(uint8_t)),
    };
    for (size_t i = 0; i < count; i++) {
        size_t cluster = next_below(generator, CLUSTERS);
        data.labels[i] = (uint8_t)(cluster % CLASSES);
        for (size_t j = 0; j < FEATURES; j++) {
            data.features[i * FEATURES + j] =
                centres[cluster * FEATURES + j] + spread * next_normal(generator);
        }
    }
    return data;
}

static void dataset_free(struct dataset *data)
{
    free(data->features);
    free(data->labels);
}

static void shuffle(size_t *order, size_t count, struct generator *generator)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = next_below(generator, i);
        size_t kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

struct batch {
    size_t count;
    float *features;
    uint8_t *labels;
};

/* Copies the samples `order[0 … count)` side by side. */
static void batch_gather(struct batch *batch, const struct dataset *data,
                         const size_t *order, size_t count)
{
    SW_SCOPE("data");
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        memcpy(batch->features + i * FEATURES, data->features + order[i] * FEATURES,
               FEATURES * sizeof(float));
        batch->labels[i] = data->labels[order[i]];
    }
}

/* --- Network ---------------------------------------------------------------------- */

/* y = x · weight + bias, where weight is inputs × outputs. The arrays are parts of the network's. */
struct layer {
    size_t inputs, outputs;
    float *weight, *bias;
    float *weight_gradient, *bias_gradient;
};

struct network {
    size_t parameters;
    float *values, *gradients, *velocities; /* one of each a parameter */
    struct layer layers[LAYERS];
    float *outputs[LAYERS + 1]; /* [0] is the batch, which the network borrows */
    float *deltas[LAYERS + 1];  /* the loss by each output; [0] is not needed */
};

static struct network network_make(size_t batch_max, struct generator *generator)
{
    struct network network = {0};
    for (size_t i = 0; i < LAYERS; i++) {
        network.parameters += (widths[i] + 1) * widths[i + 1];
    }
    network.values = allocate(network.parameters, sizeof(float));
    network.gradients = allocate(network.parameters, sizeof(float));
    network.velocities = allocate(network.parameters, sizeof(float));
    size_t offset = 0;
    for (size_t i = 0; i < LAYERS; i++) {
        struct layer *layer = &network.layers[i];
        layer->inputs = widths[i];
        layer->outputs = widths[i + 1];
        layer->weight = network.values + offset;
        layer->weight_gradient = network.gradients + offset;
        offset += layer->inputs * layer->outputs;
        layer->bias = network.values + offset;
        layer->bias_gradient = network.gradients + offset;
        offset += layer->outputs;

        float scale = sqrtf(2.0F / (float)layer->inputs);
        for (size_t j = 0; j < layer->inputs * layer->outputs; j++) {
            layer->weight[j] = scale * next_normal(generator);
        }
        network.outputs[i + 1] = allocate(batch_max * layer->outputs, sizeof(float));
        network.deltas[i + 1] = allocate(batch_max * layer->outputs, sizeof(float));
    }
    return network;
}

static void network_free(struct network *network)
{
    free(network->values);
    free(network->gradients);
    free(network->velocities);
    for (size_t i = 1; i <= LAYERS; i++) {
        free(network->outputs[i]);
        free(network->deltas[i]);
    }
}

static void layer_forward(const struct layer *layer, const float *restrict x,
                          float *restrict y, size_t count, bool relu)
{
    SW_SCOPE("dense");
    const size_t inputs = layer->inputs;
    const size_t outputs = layer->outputs;
    for (size_t sample = 0; sample < count; sample++) {
        float *row = y + sample * outputs;
        memcpy(row, layer->bias, outputs * sizeof(float));
        for (size_t i = 0; i < inputs; i++) {
            const float input = x[sample * inputs + i];
            const float *weight = layer->weight + i * outputs;
            for (size_t j = 0; j < outputs; j++) {
                row[j] += input * weight[j];
            }
        }
        if (relu) {
            for (size_t j = 0; j < outputs; j++) {
                row[j] = row[j] > 0.0F ? row[j] : 0.0F;
            }
        }
    }
}

/* Adds to the layer's gradients and, unless `x_delta` is NULL, hands the deltas down through the
 * ReLU that made `x`. */
static void layer_backward(const struct layer *layer, const float *restrict x,
                           const float *restrict y_delta, float *restrict x_delta,
                           size_t count)
{
    SW_SCOPE("dense_backward");
    const size_t inputs = layer->inputs;
    const size_t outputs = layer->outputs;
    for (size_t sample = 0; sample < count; sample++) {
        const float *delta = y_delta + sample * outputs;
        for (size_t j = 0; j < outputs; j++) {
            layer->bias_gradient[j] += delta[j];
        }
        for (size_t i = 0; i < inputs; i++) {
            const float input = x[sample * inputs + i];
            float *gradient = layer->weight_gradient + i * outputs;
            for (size_t j = 0; j < outputs; j++) {
                gradient[j] += input * delta[j];
            }
            if (!x_delta) {
                continue;
            }
            float sum = 0.0F;
            if (input > 0.0F) {
                const float *weight = layer->weight + i * outputs;
                for (size_t j = 0; j < outputs; j++) {
                    sum += weight[j] * delta[j];
                }
            }
            x_delta[sample * inputs + i] = sum;
        }
    }
}

/* Leaves the logits in network->outputs[LAYERS]. */
static void network_forward(struct network *network, float *features, size_t count)
{
    network->outputs[0] = features;
    for (size_t i = 0; i < LAYERS; i++) {
        layer_forward(&network->layers[i], network->outputs[i], network->outputs[i + 1],
                      count, i + 1 < LAYERS);
    }
}

/* Mean cross entropy of the batch. Leaves its derivative in network->deltas[LAYERS]. */
static double network_loss(struct network *network, const struct batch *batch)
{
    SW_SCOPE("loss");
    double total = 0.0;
    for (size_t sample = 0; sample < batch->count; sample++) {
        const float *logits = network->outputs[LAYERS] + sample * CLASSES;
        float *delta = network->deltas[LAYERS] + sample * CLASSES;
        float largest = logits[0];
        for (size_t j = 1; j < CLASSES; j++) {
            largest = logits[j] > largest ? logits[j] : largest;
        }
        float sum = 0.0F;
        for (size_t j = 0; j < CLASSES; j++) {
            delta[j] = expf(logits[j] - largest);
            sum += delta[j];
        }
        const uint8_t label = batch->labels[sample];
        total += logf(sum) - (logits[label] - largest);
        for (size_t j = 0; j < CLASSES; j++) {
            float target = j == label ? 1.0F : 0.0F;
            delta[j] = (delta[j] / sum - target) / (float)batch->count;
        }
    }
    return total / (double)batch->count;
}

static void network_zero_gradients(struct network *network)
{
    SW_SCOPE("zero_grad");
    memset(network->gradients, 0, network->parameters * sizeof(float));
}

/* Adds to the gradients, from the deltas that network_loss left. */
static void network_backward(struct network *network, size_t count)
{
    SW_SCOPE("backward");
    for (size_t i = LAYERS; i-- > 0;) {
        layer_backward(&network->layers[i], network->outputs[i], network->deltas[i + 1],
                       network->deltas[i], count);
    }
}

static void network_update(struct network *network, float rate)
{
    SW_SCOPE("update");
    for (size_t i = 0; i < network->parameters; i++) {
        network->velocities[i] =
            momentum * network->velocities[i] - rate * network->gradients[i];
        network->values[i] += network->velocities[i];
    }
    sw_update();
}

/* Share of the samples whose largest logit is that of their class. */
static double network_accuracy(struct network *network, const struct dataset *data,
                               size_t batch_size)
{
    SW_SCOPE("validation");
    size_t right = 0;
    for (size_t begin = 0; begin < data->count; begin += batch_size) {
        size_t rest = data->count - begin;
        size_t count = rest < batch_size ? rest : batch_size;
        network_forward(network, data->features + begin * FEATURES, count);
        for (size_t sample = 0; sample < count; sample++) {
            const float *logits = network->outputs[LAYERS] + sample * CLASSES;
            size_t best = 0;
            for (size_t j = 1; j < CLASSES; j++) {
                best = logits[j] > logits[best] ? j : best;
            }
            right += best == data->labels[begin + sample];
        }
    }
    return (double)right / (double)data->count;
}

/* FNV-1a over the bytes of every weight. */
static uint64_t network_checksum(const struct network *network)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < network->parameters; i++) {
        uint32_t bits;
        memcpy(&bits, &network->values[i], sizeof(bits));
        for (unsigned shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ (bits >> shift & 0xff)) * 0x100000001b3U;
        }
    }
    return hash;
}

/* --- Training --------------------------------------------------------------------- */

/* One pass over the data; returns its mean loss. */
static double train_epoch(struct network *network, const struct dataset *data,
                          const size_t *order, struct batch *batch, size_t batch_size)
{
    const float rate = fminf(learning_rate * (float)batch_size, learning_rate_most);
    double total = 0.0;
    for (size_t begin = 0; begin < data->count; begin += batch_size) {
        size_t rest = data->count - begin;
        sw_step_begin();
        batch_gather(batch, data, order + begin, rest < batch_size ? rest : batch_size);
        SW_SECTION("forward") {
            network_forward(network, batch->features, batch->count);
        }
        double loss = network_loss(network, batch);
        network_zero_gradients(network);
        network_backward(network, batch->count);
        network_update(network, rate);
        sw_counter("loss", loss);
        sw_step_end();
        total += loss * (double)batch->count;
    }
    return total / (double)data->count;
}

struct options {
    unsigned long epochs, batch, seed;
};

/* Trains; returns the accuracy on the test data after the last epoch. */
static double train(const struct options *options)
{
    struct generator generator = {options->seed};
    float *centres = allocate((size_t)CLUSTERS * FEATURES, sizeof(float));
    for (size_t i = 0; i < (size_t)CLUSTERS * FEATURES; i++) {
        centres[i] = next_normal(&generator);
    }
    struct dataset train_data = dataset_make(TRAIN_SAMPLES, centres, &generator);
    struct dataset test_data = dataset_make(TEST_SAMPLES, centres, &generator);
    struct network network = network_make(options->batch, &generator);
    struct batch batch = {
        .features = allocate(options->batch * FEATURES, sizeof(float)),
        .labels = allocate(options->batch, sizeof(uint8_t)),
    };
    size_t *order = allocate(TRAIN_SAMPLES, sizeof(size_t));
    for (size_t i = 0; i < TRAIN_SAMPLES; i++) {
        order[i] = i;
    }

    double accuracy = 0.0;
    for (unsigned long epoch = 0; epoch < options->epochs; epoch++) {
        sw_epoch((uint32_t)epoch);
        shuffle(order, TRAIN_SAMPLES, &generator);
        double loss = train_epoch(&network, &train_data, order, &batch, options->batch);
        accuracy = network_accuracy(&network, &test_data, options->batch);
        sw_counter("accuracy", accuracy);
        char text[32];
        snprintf(text, sizeof(text), "epoch %lu done", epoch);
        sw_mark(text);
        printf("epoch %2lu  loss %.4f  accuracy %.1f %%\n", epoch, loss,
               100.0 * accuracy);
        fflush(stdout);
    }
    printf("weights %016" PRIx64 "\n", network_checksum(&network));

    free(order);
    free(batch.features);
    free(batch.labels);
    network_free(&network);
    dataset_free(&train_data);
    dataset_free(&test_data);
    free(centres);
    return accuracy;
}

/* --- Command line ----------------------------------------------------------------- */

static const char usage[] = "usage: mlp [--epochs N] [--batch N] [--seed N]\n";

/* Reads a whole number from `low` to `high`; false when `text` is something else. */
static bool parse_number(const char *text, unsigned long low, unsigned long high,
                         unsigned long *out)
{
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < low || value > high) {
        return false;
    }
    *out = value;
    return true;
}

/* 0, or the exit code with which to leave at once. */
static int parse_options(struct options *options, int argc, char **argv, bool *leave)
{
    const struct {
        const char *name;
        unsigned long *value, low, high;
    } known[] = {
        {"--epochs", &options->epochs, 1, 100000},
        {"--batch", &options->batch, 1, BATCH_MAX},
        {"--seed", &options->seed, 0, UINT32_MAX},
    };
    *leave = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        size_t which = 0;
        while (which < sizeof(known) / sizeof(known[0]) &&
               strcmp(argv[i], known[which].name) != 0) {
            which++;
        }
        if (which == sizeof(known) / sizeof(known[0])) {
            fprintf(stderr, "mlp: unknown argument '%s'\n%s", argv[i], usage);
            return 2;
        }
        if (i + 1 == argc) {
            fprintf(stderr, "mlp: %s needs a number\n%s", argv[i], usage);
            return 2;
        }
        i++;
        if (!parse_number(argv[i], known[which].low, known[which].high,
                          known[which].value)) {
            fprintf(stderr, "mlp: %s takes a whole number from %lu to %lu, not '%s'\n",
                    known[which].name, known[which].low, known[which].high, argv[i]);
            return 2;
        }
    }
    *leave = false;
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {.epochs = 20, .batch = 32, .seed = 1};
    bool leave;
    int code = parse_options(&options, argc, argv, &leave);
    if (leave) {
        return code;
    }

    /* A program whose recording cannot start is still a program: it says so and runs on. */
    sw_error_info why = {0};
    int result = sw_init_info(NULL, sizeof(sw_config), &why);
    if (result < 0 && result != SW_EDISABLED) {
        fprintf(stderr, "mlp: not recorded: %s\n", why.message);
    }
    double accuracy = train(&options);
    sw_shutdown();

    if (accuracy < good_accuracy) {
        fprintf(stderr, "mlp: the accuracy is below %.0f %%; try more epochs\n",
                100.0 * good_accuracy);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
