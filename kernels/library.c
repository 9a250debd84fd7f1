#include "kernels/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *open_library(const struct wlb_library *library)
{
	const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
	char path[4096];
	void *handle = dlopen(library->file, flags);
	snprintf(path, sizeof(path), "%s/%s", library->folder, library->file);
	return handle != NULL ? handle : dlopen(path, flags);
}

int wlb_library_load(const struct wlb_library *library, const char *const *names, int count, void *table,
                     struct wlb_error *error)
{
	void *handle = open_library(library);
	if (handle == NULL)
		return wlb_fail(error, "cannot load %s: %s; install %s, name its directory in LD_LIBRARY_PATH, or %s",
		                library->title, dlerror(), library->install, library->instead);
	for (int i = 0; i < count; i++) {
		void *function = dlsym(handle, names[i]);
		if (function == NULL)
			return wlb_fail(error, "%s has no function %s; install %s", library->file, names[i],
			                library->install);
		memcpy((char *)table + (size_t)i * sizeof(function), &function, sizeof(function));
	}
	return 0;
}
