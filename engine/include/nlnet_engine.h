/* The nlnet engine: non-local denoising networks on the CPU, for any language that can call C.
 *
 * Nothing here allocates memory, opens files, makes threads or keeps global state. Memory is the
 * caller's: a function that needs some says how much when `memory` is NULL, and takes it when
 * called again. Threads are the caller's, too: any number of them call nlnet_work(job) until it
 * says NLNET_DONE.
 *
 *     nlnet_network *network; nlnet_job *job; size_t size;
 *     nlnet_network_make(block, bytes, NLNET_FLOAT, NLNET_BEST, NULL, &size, NULL);
 *     nlnet_network_make(block, bytes, NLNET_FLOAT, NLNET_BEST, malloc(size), &size, &network);
 *     nlnet_denoise(network, &image, NULL, &size, NULL);
 *     nlnet_denoise(network, &image, malloc(size), &size, &job);
 *     while (nlnet_work(job) != NLNET_DONE) {}
 *
 * All images are planes on the 0-255 scale, gray or RGB, of the network's element type.
 */
#ifndef NLNET_ENGINE_H
#define NLNET_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define NLNET_API __declspec(dllexport)
#elif defined(__wasm__)
#define NLNET_API __attribute__((visibility("default"), used))
#else
#define NLNET_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function or structure changes; compare it with nlnet_engine_version(). */
#define NLNET_ENGINE_VERSION 2

typedef enum {
    NLNET_OK = 0,
    NLNET_BAD_BLOCK = 1,    /* not a parameter block, cut short, or with values out of bounds */
    NLNET_BAD_VERSION = 2,  /* a parameter block of another version */
    NLNET_BAD_ARGUMENT = 3, /* a size, count, pointer or enumeration that cannot be */
    NLNET_TOO_SMALL = 4,    /* the image has too few pixels for the network's patches and groups */
    NLNET_NO_MEMORY = 5,    /* fewer bytes than needed, or more than the machine can address */
    NLNET_NO_SUCH_SET = 6   /* an instruction set that this CPU or this build does not have */
} nlnet_status;

typedef enum { NLNET_FLOAT = 0, NLNET_DOUBLE = 1 } nlnet_element;

/* Instruction sets. The groups that matching finds are the same to the bit with all of them. */
typedef enum {
    NLNET_BEST = 0, /* the best that this CPU has */
    NLNET_SSE2 = 1,
    NLNET_AVX2 = 2,
    NLNET_AVX512 = 3,
    NLNET_NEON = 4,
    NLNET_SIMD128 = 5
} nlnet_set;

/* What nlnet_work did. */
typedef enum {
    NLNET_RAN = 0,  /* one task; call again */
    NLNET_IDLE = 1, /* no task is ready while other threads work on some; wait, then call again */
    NLNET_DONE = 2, /* the job is finished, or was cancelled and no thread works on it */
    NLNET_CANCELLED = 3 /* cancelled; another thread may still be at work on its last task */
} nlnet_progress_state;

typedef struct nlnet_network nlnet_network;
typedef struct nlnet_eye nlnet_eye;
typedef struct nlnet_job nlnet_job;

/* ---- The library ------------------------------------------------------------------------- */

NLNET_API uint32_t nlnet_engine_version(void);

/* The set that NLNET_BEST means here. */
NLNET_API nlnet_set nlnet_best_set(void);

/* Its name, such as "AVX2", or NULL where this CPU or this build does not have it. */
NLNET_API const char *nlnet_set_name(nlnet_set set);

/* The height of tiles where a task has 0 for it. */
NLNET_API int32_t nlnet_tile_rows(void);

/* ---- A network --------------------------------------------------------------------------- */

/* Check a parameter block and make it ready: a network may serve any number of jobs, at once too.
 *
 * The block is copied from; `memory` (aligned to 64 bytes) must live as long as the network.
 * With memory NULL, only *size is set. docs/engine.md describes the block's layout. */
NLNET_API nlnet_status nlnet_network_make(const void *block, size_t bytes, nlnet_element element,
                                          nlnet_set set, void *memory, size_t *size,
                                          nlnet_network **network);

/* ---- An eye ------------------------------------------------------------------------------ */

/* The same for an eye, a small convolutional network that computes in float: it looks at tiles of a
 * picture and gives maps of them, which are 1 / unit of their size; its block says how many maps,
 * and the unit, 2 to 16. */
NLNET_API nlnet_status nlnet_eye_make(const void *block, size_t bytes, nlnet_set set, void *memory,
                                      size_t *size, nlnet_eye **eye);

/* ---- White noise ------------------------------------------------------------------------- */

typedef struct {
    const float *data; /* (height, width), contiguous, all finite */
    int64_t height, width;
} nlnet_plane;

/* How strong the white noise in planes is: parts of one image, every channel by itself. */
typedef struct {
    const nlnet_plane *planes;
    int64_t count;    /* up to 4096 */
    double low, high; /* where values were clipped; infinite: nowhere */
    double start;     /* about what sigma is; 0: unknown */
} nlnet_white_task;

/* Set *sigma to the noise's standard deviation, in the units of the planes. With memory (aligned to
 * 64 bytes) NULL, only *size is set. NLNET_TOO_SMALL: no plane has 3x3 pixels. */
NLNET_API nlnet_status nlnet_estimate_white(const nlnet_white_task *task, nlnet_set set,
                                            void *memory, size_t *size, double *sigma);

/* ---- Jobs -------------------------------------------------------------------------------- */

/* Rows of an image. In memory: `data` is the address of channel 0, row 0, column 0, and strides
 * are in bytes. Rows that are not in memory: `data` is NULL, and `rows` is called with one span
 * after the other, from the top down, each row once, from any thread that works, one call at a
 * time. `planes` has shape (channels, count, width), contiguous; reading fills it, writing takes
 * it. A result other than 0 cancels the job. */
typedef struct {
    void *data;
    ptrdiff_t channel_stride, row_stride, column_stride;
    int (*rows)(void *context, int64_t first, int64_t count, void *planes);
    void *context;
} nlnet_rows;

/* Denoise one image of any size. Memory grows with its width, not with its height. */
typedef struct {
    int64_t height, width;
    nlnet_rows noisy, denoised; /* not the same memory */
    double low, high;           /* the intensity box; low > high: none */
    int32_t threads;            /* how many may work at once, at most */
    int32_t tile_rows;          /* 8 to 4096: fewer take less memory; 0: nlnet_tile_rows() */
} nlnet_denoise_task;

/* Find the groups of a batch of images: (batch, height, width) of the network's element type, all
 * contiguous, into (batch, height, width, K, 2) offsets (dy, dx). */
typedef struct {
    int64_t batch, height, width;
    const void *images;
    int8_t *groups;
    int32_t threads;
} nlnet_match_task;

/* Run a batch of working planes (gray, or opponent colors) through the stages from `first_stage`
 * up to, not including, `last_stage`, given the groups. Arrays are contiguous: (batch, C, H, W).
 * What the backward pass needs is recorded: `updates` holds u of every stage, and `estimates`
 * P_C(u), both (stages, batch, C, H, W); the last of the estimates is the result. */
typedef struct {
    int64_t batch, height, width;
    int32_t first_stage, last_stage;
    const void *estimate, *noisy;
    const int8_t *groups;
    void *updates, *estimates;
    double low, high;     /* the intensity box; low > high: none */
    int32_t project_last; /* project the last of these stages, whatever the network says */
    int32_t threads;
} nlnet_forward_task;

/* The backward pass of a forward task: the gradients of a loss, given that of its result. */
typedef struct {
    nlnet_forward_task forward; /* as it was given, with what it recorded */
    const void *cotangent;      /* (batch, C, H, W) */
    void *estimate_gradient;    /* (batch, C, H, W), as the following one */
    void *noisy_gradient;
    double *filters;       /* (stages, F, P) */
    double *group_weights; /* (stages, K) */
    double *coefficients;  /* (stages, C, F, M) */
    double *step_sizes;    /* (stages,) */
} nlnet_backward_task;

/* Look at tiles, gray or RGB on the 0-255 scale. Arrays are contiguous. */
typedef struct {
    int64_t count, height, width; /* sides are multiples of the eye's unit, up to 1024 */
    int32_t channels;             /* 1 gray, 3 RGB */
    int32_t threads;
    const float *tiles; /* (count, channels, height, width) */
    float *maps;        /* (count, maps, height / unit, width / unit) */
} nlnet_look_task;

/* ---- Series ------------------------------------------------------------------------------ */

/* Pages that show nearly the same, in units of their noise: its standard deviation is 1. These
 * calls run to their end in the thread that calls them, in memory (aligned to 64 bytes) that they
 * say the size of; any number may run at once. Arrays are contiguous. Results have the same bits
 * for every instruction set. */

/* Find the motion from one page to another, of what is denoised well enough to be compared: a
 * vector (dy, dx) for every block of 8x8 pixels, (ceil(height / 8), ceil(width / 8), 2); and how
 * the 16x16 pixels around it fit, (ceil(height / 8), ceil(width / 8), 6): mean and variance of the
 * page, the mean of the other one where it has moved to, the variance of the difference there, and
 * both without motion. */
typedef struct {
    int64_t height, width;
    const float *reference, *other;
    float *field, *fits;
} nlnet_align_task;

NLNET_API nlnet_status nlnet_align(nlnet_set set, const nlnet_align_task *task, void *memory,
                                   size_t *size);

/* A page beside another one: what it shows is gain * page + offset there. */
typedef struct {
    const float *noisy, *guide; /* (channels, height, width); in the guide, NaN is left out */
    const float *field;         /* the motion from the other one to it */
    float gain, offset;
} nlnet_neighbour;

/* Average a page with those of its neighbours' pixels that show the same, as the guides tell, which
 * are denoised pages: rows from `first` up to, not including, `last`. */
typedef struct {
    int64_t height, width;
    int32_t channels, count; /* 1 or 3; of neighbours, 0 to 64 */
    const float *noisy, *guide;
    const nlnet_neighbour *neighbours;
    int64_t first, last;
    float *merged; /* (channels, height, width) */
    float *left;   /* (height, width): the standard deviation of the noise that is left */
} nlnet_merge_task;

NLNET_API nlnet_status nlnet_merge(nlnet_set set, const nlnet_merge_task *task, void *memory,
                                   size_t *size);

/* ---- Work -------------------------------------------------------------------------------- */

/* Make a job in the caller's memory (aligned to 64 bytes), which must live until no thread works on
 * it any more, as must the network or eye and all arrays. With memory NULL, only *size is set. */
NLNET_API nlnet_status nlnet_denoise(const nlnet_network *network, const nlnet_denoise_task *task,
                                     void *memory, size_t *size, nlnet_job **job);
NLNET_API nlnet_status nlnet_match(const nlnet_network *network, const nlnet_match_task *task,
                                   void *memory, size_t *size, nlnet_job **job);
NLNET_API nlnet_status nlnet_forward(const nlnet_network *network, const nlnet_forward_task *task,
                                     void *memory, size_t *size, nlnet_job **job);
NLNET_API nlnet_status nlnet_backward(const nlnet_network *network, const nlnet_backward_task *task,
                                      void *memory, size_t *size, nlnet_job **job);
NLNET_API nlnet_status nlnet_look(const nlnet_eye *eye, const nlnet_look_task *task, void *memory,
                                  size_t *size, nlnet_job **job);

/* Run one task of the job that is ready, if any, and say what happened; never waits. */
NLNET_API nlnet_progress_state nlnet_work(nlnet_job *job);

/* The share of the work that is done, from 0 to 1; from any thread, at any time. */
NLNET_API double nlnet_progress(const nlnet_job *job);

/* Start no more tasks; from any thread, at any time. */
NLNET_API void nlnet_cancel(nlnet_job *job);

/* 1 if the job was cancelled, by nlnet_cancel or by a callback, before it was finished. */
NLNET_API int nlnet_was_cancelled(const nlnet_job *job);

#ifdef __cplusplus
}
#endif

#endif
