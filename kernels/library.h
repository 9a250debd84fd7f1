/*
 * Loads a shared library when it is needed. A program that does not link it also starts where it is not installed.
 */
#ifndef KERNELS_LIBRARY_H
#define KERNELS_LIBRARY_H

#include "libwlb/wlb.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wlb_library {
	const char *title;   /* "NCCL" */
	const char *file;    /* "libnccl.so.2" */
	const char *folder;  /* where it is looked for after the places that the loader knows */
	const char *install; /* what to install: "NCCL 2.14 or later" */
	const char *instead; /* what can be done without it: "use --transport mpi" */
};

/* Loads the library, which stays loaded, and sets table[count], pointers to functions, to those with these names.
 * Returns 0, or -1 with the reason where there is no such library or it lacks a function. */
int wlb_library_load(const struct wlb_library *library, const char *const *names, int count, void *table,
                     struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif
