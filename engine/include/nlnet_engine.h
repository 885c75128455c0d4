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
#define NLNET_ENGINE_VERSION 3

typedef enum {
    NLNET_OK = 0,
    NLNET_BAD_BLOCK = 1,    /* not a parameter block, cut short, or with values out of bounds */
    NLNET_BAD_VERSION = 2,  /* a parameter block of another version */
    NLNET_BAD_ARGUMENT = 3, /* a size, count, pointer or enumeration that cannot be */
    NLNET_TOO_SMALL = 4,    /* the image has too few pixels for the network's patches and groups */
    NLNET_NO_MEMORY = 5,    /* fewer bytes than needed, or more than the machine can address */
    NLNET_NO_SUCH_SET = 6,  /* an instruction set that this CPU or this build does not have */
    NLNET_TOO_LARGE = 7     /* values that are too large beside their noise for floats */
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

/* ---- A family of networks ---------------------------------------------------------------- */

/* A family's block has values at several sigmas. Write the block of its network for noise of the
 * standard deviation sigma on the 0-255 scale, beyond those sigmas for the nearest of them. With
 * `made` NULL, only *size is set. */
NLNET_API nlnet_status nlnet_family_at(const void *block, size_t bytes, double sigma, void *made,
                                       size_t *size);

/* ---- An eye ------------------------------------------------------------------------------ */

/* The same for an eye, a small convolutional network that computes in float: it looks at tiles of a
 * picture and gives maps of them, which are 1 / unit of their size; its block says how many maps,
 * and the unit, 2 to 16. */
NLNET_API nlnet_status nlnet_eye_make(const void *block, size_t bytes, nlnet_set set, void *memory,
                                      size_t *size, nlnet_eye **eye);

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
 * the 16x16 pixels around it fit, (ceil(height / 8), ceil(width / 8), 8): mean and variance of the
 * page, the mean of the other one where it has moved to, the variance of the difference there, both
 * without motion, and the covariance of the noisy pages with motion and without. The motion that is
 * expected is one of those that are tried. */
typedef struct {
    int64_t height, width;
    const float *reference, *other;
    const float *noisy, *other_noisy; /* the pages before they were denoised */
    const float *expected;            /* as the field, or NULL */
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
    float *merged;  /* (channels, height, width) */
    float *left;    /* (height, width): the standard deviation of the noise that is left */
    float *removed; /* the same of the noise that the page has lost */
} nlnet_merge_task;

NLNET_API nlnet_status nlnet_merge(nlnet_set set, const nlnet_merge_task *task, void *memory,
                                   size_t *size);

/* Give back to an averaged page what stands out of the noise that it has lost: coefficients of the
 * cosine transform of 32x32 pixels of more than `least` times it. Rows from `first` up to, not
 * including, `last`. */
typedef struct {
    int64_t height, width;
    int32_t channels; /* 1 or 3 */
    float least;
    const float *noisy, *merged; /* (channels, height, width) */
    const float *removed;        /* (height, width): the standard deviation of that noise */
    int64_t first, last;
    float *kept; /* (channels, height, width): the result */
} nlnet_keep_task;

NLNET_API nlnet_status nlnet_keep(nlnet_set set, const nlnet_keep_task *task, void *memory,
                                  size_t *size);

/* ---- Estimates of noise ------------------------------------------------------------------ */

/* The noise of an image, or of the pages of a stack that have it in common, is found from a sample
 * of bounded size: some of the pages, and of each of them tiles on a grid. */

/* The type of values. */
typedef enum {
    NLNET_UINT8 = 0,
    NLNET_INT8 = 1,
    NLNET_UINT16 = 2,
    NLNET_INT16 = 3,
    NLNET_UINT32 = 4,
    NLNET_INT32 = 5,
    NLNET_FLOAT32 = 6,
    NLNET_FLOAT64 = 7
} nlnet_type;

#define NLNET_SAMPLE_PAGES 8

/* Set pages to the numbers of those of `count` pages that are looked at, NLNET_SAMPLE_PAGES at
 * most, and return how many they are. */
NLNET_API int64_t nlnet_sample_pages(int64_t count, int64_t *pages);

/* Tiles of a page, and pixels of a tile. */
typedef struct {
    int64_t rows, columns;
    int64_t height, width;
} nlnet_grid;

/* Set the grid of tiles of a page of this size, one of so many pages: a small page is one tile. The
 * tile in row y and column x of the grid begins at nlnet_tile_start(y, rows, height of the page,
 * height of a tile) and nlnet_tile_start(x, columns, width of the page, width of a tile). */
NLNET_API nlnet_status nlnet_sample_grid(int64_t height, int64_t width, int64_t pages,
                                         nlnet_grid *grid);
NLNET_API int64_t nlnet_tile_start(int64_t number, int64_t count, int64_t side, int64_t tile);

/* Planes in memory, of finite values: strides are in bytes. */
typedef struct {
    const void *data;
    int64_t channels, height, width;
    ptrdiff_t channel_stride, row_stride, column_stride;
} nlnet_planes;

/* The least and the largest of `count` values, and how many are as small, or as large. */
typedef struct {
    double low, high;
    int64_t low_count, high_count, count;
} nlnet_extremes;

/* Add planes, such as parts of an image, to the extremes of those before; of the first, count is
 * 0. */
NLNET_API nlnet_status nlnet_find_extremes(const nlnet_planes *planes, nlnet_type type,
                                           nlnet_extremes *extremes);

typedef struct {
    nlnet_extremes extremes; /* of all values, not only those in the tiles */
    int32_t type;            /* nlnet_type */
    int32_t channels;        /* 1 gray, 3 RGB */
    int64_t pages;
    nlnet_grid grid;           /* of each page */
    const nlnet_planes *tiles; /* (pages, rows, columns) */
} nlnet_sample;

/* What the values of a sample fill: from low to high nearly all of them are. The smallest
 * difference between two is the step, and mean their mean. */
typedef struct {
    double low, high, step, mean;
} nlnet_measures;

NLNET_API nlnet_status nlnet_measure_sample(const nlnet_sample *sample, void *memory, size_t *size,
                                            nlnet_measures *measures);

typedef enum {
    NLNET_NO_NOISE = 0,     /* in a task: whichever there is */
    NLNET_WHITE_NOISE = 1,  /* sigma says how strong it is */
    NLNET_PHOTON_NOISE = 2, /* photons say it, for every channel */
    NLNET_CAMERA_NOISE = 3  /* correlated between pixels; strengths say it */
} nlnet_found_kind;

/* Photon noise of a channel: at brightness x, its variance is gain * (x - black) + read * read. */
typedef struct {
    double gain, read, black;
} nlnet_photons;

/* Noise that was found, in the units of the image. */
typedef struct {
    int32_t kind;     /* nlnet_found_kind */
    int32_t looked;   /* 1 if the eye has looked; if not, what it says below is 0 */
    double sigma;     /* on average over the image, except for photon noise */
    double certainty; /* the probability that there is noise, or none if that is the kind */
    nlnet_photons photons[3];
    /* (2, 3, rows, columns): standard deviations of luma and chroma at the full size, and after
     * averaging squares of 2x2 and 4x4 pixels, as coarse maps over the image. In the memory of the
     * job. */
    const float *strengths;
    int64_t rows, columns;
    /* What the eye says: the probability of each nlnet_found_kind, not calibrated; the line of the
     * variance over the brightness, from 0 to 255 for what the values fill; and how many times the
     * noise varies with the brightness. */
    double odds[4];
    double slope, foot, variation;
} nlnet_found_noise;

typedef struct {
    nlnet_sample sample;
    nlnet_measures measures; /* of the sample */
    int32_t kind;            /* nlnet_found_kind: insist on it */
    nlnet_set set;
    int32_t threads;
    nlnet_found_noise *found;
} nlnet_estimate_task;

/* ---- Removal ----------------------------------------------------------------------------- */

/* Removing noise of any kind from an image in its own units: the image is turned into one with
 * white noise of the strength that the networks are trained for, they remove it, and everything is
 * turned back. Camera noise is removed from coarse to fine, at up to NLNET_SCALES scales. */
#define NLNET_SCALES 3

/* Gray or RGB pixels, in memory; strides may leave out an alpha channel. What is written may also
 * be handed to a callback, as floats. Integers are rounded, and kept in the range of their type. */
typedef struct {
    int32_t type; /* nlnet_type */
    nlnet_rows rows;
} nlnet_pixels;

/* Noise of one channel over the brightness x. Without points, its variance is gain * x + offset,
 * photon noise, with a gain above 0. With two points or more, (count, 2) of ascending brightness
 * and the standard deviation there, it is linear between them and constant outside. */
typedef struct {
    double gain, offset;
    const double *points;
    int64_t count;
} nlnet_level;

typedef enum {
    NLNET_WHITE = 0,     /* the same everywhere: sigma */
    NLNET_DEPENDENT = 1, /* on the brightness: levels, one for all channels or one for each */
    NLNET_CAMERA = 2     /* correlated between pixels: strengths */
} nlnet_noise_kind;

/* What the noise of an image is, in its units. */
typedef struct {
    int32_t kind; /* nlnet_noise_kind */
    int32_t level_count;
    double sigma;
    const nlnet_level *levels;
    /* (2, NLNET_SCALES, rows, columns): standard deviations of luma and chroma at the full size,
     * and after averaging squares of 2x2 and 4x4 pixels, as coarse maps over the image; 0 where
     * nothing is to be removed. */
    const float *strengths;
    int64_t rows, columns; /* up to 4096 */
    double certainty;      /* how sure camera noise is, from 0 to 1 */
} nlnet_noise;

/* Where in a larger image a part is, for camera noise: one scale of a part is removed by itself. */
typedef struct {
    int32_t scale;         /* of the part: 0 is the full size, 1 half of it */
    int64_t height, width; /* of the whole image at that scale */
    int64_t top, left;
    const float *change; /* what was changed at half the part's size, (channels, height / 2,
                            width / 2), or NULL */
} nlnet_place;

/* Runs a network elsewhere, on a GPU for instance: (channels, height, width) planes that are scaled
 * for it, and the box, none if low > high. A result other than 0 cancels the job. */
typedef int (*nlnet_elsewhere)(void *context, int32_t scale, int64_t height, int64_t width,
                               const float *noisy, float *denoised, double low, double high);

typedef struct {
    int64_t height, width;
    int32_t channels; /* 1 or 3 */
    nlnet_pixels noisy, denoised;
    nlnet_noise noise;
    double luma, chroma;       /* how much noise is removed, from 0 to 2 times what there is */
    double span, black;        /* what the image fills, and where that begins: nlnet_fill() */
    double low, high;          /* the intensity box; low > high: none */
    const nlnet_place *place;  /* NULL: the image is whole */
    nlnet_elsewhere elsewhere; /* NULL: networks run here */
    void *context;
    int32_t threads, tile_rows; /* as for nlnet_denoise */
} nlnet_removal_task;

/* For which white noise, on the 0-255 scale, networks are needed: one for each of *scales scales,
 * the full size first; 0 where none is. */
NLNET_API nlnet_status nlnet_removal_sigmas(const nlnet_removal_task *task, int32_t *scales,
                                            double sigmas[NLNET_SCALES]);

/* Make a job that removes the noise; nlnet_denoise has the rules. There is one network of floats
 * for each scale that needs one, whose block names a sigma; at smaller scales only its stages run.
 * Values too large for floats beside the noise end the job: nlnet_failure() says NLNET_TOO_LARGE.
 */
NLNET_API nlnet_status nlnet_remove(const nlnet_network *const networks[NLNET_SCALES],
                                    const nlnet_removal_task *task, void *memory, size_t *size,
                                    nlnet_job **job);

/* What an image fills for the networks, and where that begins, if nearly all of its values are from
 * low to high. */
NLNET_API nlnet_status nlnet_fill(const nlnet_noise *noise, double low, double high, double *span,
                                  double *black);

/* The certainty from which on all of the noise is removed. */
NLNET_API double nlnet_sure(void);

/* The shares of what networks remove that are taken from the image, for a strength of luma and
 * chroma: less than 1 if the strength is, or if camera noise is in doubt. */
NLNET_API nlnet_status nlnet_shares(const nlnet_noise *noise, const double strength[2],
                                    double shares[2]);

/* Parts of it, for arrays in memory; each runs to its end in the thread that calls it. */

/* Turn values so that their noise has the standard deviation 1 everywhere, or denoised ones back:
 * to the values whose noisy versions have these means. In place is possible. */
NLNET_API nlnet_status nlnet_stabilise(const nlnet_level *level, nlnet_element element,
                                       nlnet_set set, int inverse, int64_t count,
                                       const void *values, void *turned, void *memory,
                                       size_t *size);

/* Means of 2x2 pixels: (channels, height, width) to (channels, height / 2, width / 2). */
NLNET_API nlnet_status nlnet_halve(nlnet_set set, int32_t channels, int64_t height, int64_t width,
                                   const float *planes, float *half);

/* Rows first to last of (channels, height, width) planes at twice the size, whose last row and
 * column may be one more: (channels, last - first, full_width). */
NLNET_API nlnet_status nlnet_enlarge(nlnet_set set, int32_t channels, int64_t height, int64_t width,
                                     const float *half, int64_t first, int64_t last,
                                     int64_t full_width, float *planes, void *memory, size_t *size);

/* A coarse map (rows, columns) at the size of an image, (height, width). */
NLNET_API nlnet_status nlnet_widen(nlnet_set set, int64_t rows, int64_t columns, const float *map,
                                   int64_t height, int64_t width, float *plane, void *memory,
                                   size_t *size);

/* Go from noisy (channels, pixels) to denoised ones by shares of luma and chroma, 0 to 1; in
 * place. */
NLNET_API nlnet_status nlnet_blend(nlnet_set set, int32_t channels, int64_t pixels,
                                   const float *noisy, float *denoised, double luma, double chroma);

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

/* The same for an estimate of noise, which sets *found. The eye has 16 maps or more, with the
 * meaning that docs/engine.md says; it is not needed for white and photon noise that is insisted
 * on. NLNET_TOO_SMALL: a tile has less than 8x8 pixels. */
NLNET_API nlnet_status nlnet_estimate_noise(const nlnet_eye *eye, const nlnet_estimate_task *task,
                                            void *memory, size_t *size, nlnet_job **job);

/* Run one task of the job that is ready, if any, and say what happened; never waits. */
NLNET_API nlnet_progress_state nlnet_work(nlnet_job *job);

/* The share of the work that is done, from 0 to 1; from any thread, at any time. */
NLNET_API double nlnet_progress(const nlnet_job *job);

/* Start no more tasks; from any thread, at any time. */
NLNET_API void nlnet_cancel(nlnet_job *job);

/* 1 if the job was cancelled, by nlnet_cancel or by a callback, before it was finished. */
NLNET_API int nlnet_was_cancelled(const nlnet_job *job);

/* Why a job ended before it was finished, if it was not cancelled from outside; else NLNET_OK. */
NLNET_API nlnet_status nlnet_failure(const nlnet_job *job);

#ifdef __cplusplus
}
#endif

#endif
