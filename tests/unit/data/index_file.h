/* Makes .idx and .bin files field by field, as Megatron-LM would and as it never would. */
#ifndef TESTS_UNIT_DATA_INDEX_FILE_H
#define TESTS_UNIT_DATA_INDEX_FILE_H

#include <stdint.h>

enum { INDEX_FILE_MAX = 4096 };

struct index_file {
	char magic[9];
	uint64_t version;
	uint8_t dtype;
	uint64_t sequence_count; /* as stored; the arrays have `sequences` and `entries` */
	uint64_t document_count;
	int sequences;
	int entries;
	int32_t lengths[INDEX_FILE_MAX];
	int64_t pointers[INDEX_FILE_MAX];
	int64_t documents[INDEX_FILE_MAX];
	int modes; /* bytes after the arrays */
	int token_bytes;
};

/* A good index of one sequence a document. */
void index_file_init(struct index_file *file, uint8_t dtype, int token_bytes, const int32_t *lengths, int count);
/* Writes FOLDER/x.idx; returns its size. */
long index_file_write(const struct index_file *file, void **state);
/* Writes FOLDER/x.bin: token i of the file is i modulo `modulo`. */
void index_file_write_tokens(const struct index_file *file, int64_t modulo, void **state);

#endif
