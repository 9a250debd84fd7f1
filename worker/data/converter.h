/*
 * Programs that turn files of some formats into text. The format is told by how the file begins: Zstandard is
 * decompressed by zstd, and of Parquet the rows are written as JSON lines by python/corpus/parquet_lines.py.
 */
#ifndef WORKER_DATA_CONVERTER_H
#define WORKER_DATA_CONVERTER_H

#include "libwlb/wlb.h"
#include "worker/data/helper.h"

enum wlb_converter_format { WLB_CONVERTER_NONE, WLB_CONVERTER_ZSTD, WLB_CONVERTER_PARQUET };

struct wlb_converter_programs {
	const char *zstd;   /* NULL: Zstandard is not converted */
	const char *python; /* NULL: Parquet is not converted */
};

/* Returns the format of a file that is converted. The position in the file does not change. */
enum wlb_converter_format wlb_converter_tell(int fd, const struct wlb_converter_programs *programs);
/* Starts the program, which reads `fd` from its beginning; `column` is that of Parquet. The text is read from
 * helper->out. */
int wlb_converter_start(struct wlb_helper *helper, enum wlb_converter_format format,
                        const struct wlb_converter_programs *programs, int fd, const char *column,
                        struct wlb_error *error);
/* Waits for its end, after its text has ended. Returns 0; -1 where the file is damaged; WLB_CONVERTER_MISSING where the
 * program is not installed whole. */
int wlb_converter_end(struct wlb_helper *helper, struct wlb_error *error);

enum { WLB_CONVERTER_MISSING = -2 };

#endif
