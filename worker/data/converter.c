#include "worker/data/converter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAGIC_BYTES = 4,
	END_LIMIT_S = 60,       /* of a program whose output has ended */
	PACKAGE_IS_MISSING = 3, /* exit code of parquet_lines.py */
};

enum wlb_converter_format wlb_converter_tell(int fd, const struct wlb_converter_programs *programs)
{
	char magic[MAGIC_BYTES];
	if (pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic))
		return WLB_CONVERTER_NONE;
	/* pzstd begins with a frame that is to be skipped, of which there are 16 magic numbers. */
	if (programs->zstd != NULL &&
	    (memcmp(magic, "\x28\xb5\x2f\xfd", sizeof(magic)) == 0 ||
	     ((magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, "\x2a\x4d\x18", sizeof(magic) - 1) == 0)))
		return WLB_CONVERTER_ZSTD;
	return programs->python != NULL && memcmp(magic, "PAR1", sizeof(magic)) == 0 ? WLB_CONVERTER_PARQUET
	                                                                             : WLB_CONVERTER_NONE;
}

int wlb_converter_start(struct wlb_helper *helper, enum wlb_converter_format format,
                        const struct wlb_converter_programs *programs, int fd, const char *column,
                        struct wlb_error *error)
{
	if (format == WLB_CONVERTER_ZSTD) {
		/* Dumps of web sites are compressed with windows of 2 GiB, the largest that --long takes. */
		const char *const argv[] = {programs->zstd, "--decompress", "--stdout", "--quiet", "--long=31", NULL};
		if (wlb_helper_start(helper, argv, fd, error) == 0)
			return 0;
		return wlb_fail_in(error, "Zstandard needs the program zstd, of the package of that name");
	}
	char *program = wlb_helper_path("parquet_lines.py", error);
	if (program == NULL)
		return -1;
	const char *const argv[] = {programs->python, program, column, NULL};
	int rc = wlb_helper_start(helper, argv, fd, error);
	free(program);
	return rc;
}

int wlb_converter_end(struct wlb_helper *helper, struct wlb_error *error)
{
	char said[512];
	int code = wlb_helper_end(helper, END_LIMIT_S, said, sizeof(said));
	if (code == 0)
		return 0;
	wlb_fail(error, "%s", said[0] != '\0' ? said : "the program that reads it failed");
	return code == PACKAGE_IS_MISSING ? WLB_CONVERTER_MISSING : -1;
}
