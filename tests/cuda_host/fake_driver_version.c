/* The file that the kernel's driver has while it is loaded: the linker calls the function below in place of access()
 * (--wrap). It is there where CUDA_HOST_DRIVER is "old" or "no_library", whatever the computer has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
	const char *driver = getenv("CUDA_HOST_DRIVER");
	if (strcmp(path, "/proc/driver/nvidia/version") != 0)
		return __real_access(path, mode);
	if (driver != NULL && (strcmp(driver, "old") == 0 || strcmp(driver, "no_library") == 0))
		return 0;
	errno = ENOENT;
	return -1;
}
