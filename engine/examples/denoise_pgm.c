/* Denoise an 8-bit PGM: denoise_pgm model.bin noisy.pgm denoised.pgm
 * where `nlnet export gray-5x5-s25 -o model.bin` wrote the model.
 */
#include <stdio.h>
#include <stdlib.h>

#include "nlnet_engine.h"

static void stop(const char *why) {
    fprintf(stderr, "denoise_pgm: %s\n", why);
    exit(1);
}

/* Memory at a multiple of 64 bytes; a program that goes on would keep what malloc returned. */
static void *memory(size_t size) {
    char *start = malloc(size + 63);
    if (start == NULL) stop("there is not enough memory");
    return start + (64 - (uintptr_t)start % 64) % 64;
}

int main(int count, char **names) {
    if (count != 4) stop("usage: denoise_pgm MODEL.bin NOISY.pgm DENOISED.pgm");
    FILE *model = fopen(names[1], "rb"), *noisy = fopen(names[2], "rb");
    if (model == NULL || noisy == NULL) stop("the model or the image cannot be opened");
    unsigned char *block = NULL;
    size_t bytes = 0, more;
    do { /* the whole file */
        block = realloc(block, bytes + 65536);
        if (block == NULL) stop("there is not enough memory");
        bytes += more = fread(block + bytes, 1, 65536, model);
    } while (more > 0);
    long width, height, white;
    if (fscanf(noisy, "P5 %ld %ld %ld", &width, &height, &white) != 3 || width < 1 || height < 1 ||
        width > 1000000 || height > 1000000 || white != 255 || fgetc(noisy) == EOF)
        stop("the image is no PGM of 8 bits (P5, white 255, no comments)");

    const size_t pixels = (size_t)width * (size_t)height;
    float *image = memory(pixels * sizeof(float)), *result = memory(pixels * sizeof(float));
    for (size_t i = 0; i < pixels; i++) image[i] = (float)fgetc(noisy);
    if (feof(noisy)) stop("the image is cut short");

    size_t size;
    nlnet_network *network;
    if (nlnet_network_make(block, bytes, NLNET_FLOAT, NLNET_BEST, NULL, &size, NULL) != NLNET_OK ||
        nlnet_network_make(block, bytes, NLNET_FLOAT, NLNET_BEST, memory(size), &size, &network) !=
            NLNET_OK)
        stop("the model is none that `nlnet export` writes");
    const ptrdiff_t row = (ptrdiff_t)(width * (long)sizeof(float));
    const nlnet_denoise_task task = {
        .height = height,
        .width = width,
        .noisy = {.data = image, .row_stride = row, .column_stride = sizeof(float)},
        .denoised = {.data = result, .row_stride = row, .column_stride = sizeof(float)},
        .low = 0,
        .high = 255,
        .threads = 1,
    };
    nlnet_job *job;
    if (nlnet_denoise(network, &task, NULL, &size, NULL) != NLNET_OK ||
        nlnet_denoise(network, &task, memory(size), &size, &job) != NLNET_OK)
        stop("the image is too small for the model");
    while (nlnet_work(job) != NLNET_DONE) {
    }

    FILE *denoised = fopen(names[3], "wb");
    if (denoised == NULL) stop("the result cannot be written");
    fprintf(denoised, "P5\n%ld %ld\n255\n", width, height);
    for (size_t i = 0; i < pixels; i++) fputc((int)(result[i] + 0.5f), denoised);
    if (ferror(denoised) || fclose(denoised) != 0) stop("the result cannot be written");
    return 0;
}
