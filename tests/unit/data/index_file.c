#include "tests/unit/data/index_file.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/data/fixture.h"

void index_file_init(struct index_file *f, uint8_t dtype, int token_bytes, const int32_t *lengths, int count)
{
	assert_true(count < INDEX_FILE_MAX);
	*f = (struct index_file){.magic = "MMIDIDX\0",
	                         .version = 1,
	                         .dtype = dtype,
	                         .sequence_count = (uint64_t)count,
	                         .document_count = (uint64_t)count + 1,
	                         .sequences = count,
	                         .entries = count + 1,
	                         .token_bytes = token_bytes};
	int64_t pointer = 0;
	for (int i = 0; i < count; i++) {
		f->lengths[i] = lengths[i];
		f->pointers[i] = pointer;
		f->documents[i + 1] = i + 1;
		pointer += (int64_t)lengths[i] * token_bytes;
	}
}

long index_file_write(const struct index_file *f, void **state)
{
	static const char modes[INDEX_FILE_MAX];
	FILE *file = fopen(fixture_path(state, "x.idx"), "w");
	assert_non_null(file);
	fwrite(f->magic, sizeof(f->magic), 1, file);
	fwrite(&f->version, sizeof(f->version), 1, file);
	fwrite(&f->dtype, sizeof(f->dtype), 1, file);
	fwrite(&f->sequence_count, sizeof(f->sequence_count), 1, file);
	fwrite(&f->document_count, sizeof(f->document_count), 1, file);
	fwrite(f->lengths, sizeof(f->lengths[0]), (size_t)f->sequences, file);
	fwrite(f->pointers, sizeof(f->pointers[0]), (size_t)f->sequences, file);
	fwrite(f->documents, sizeof(f->documents[0]), (size_t)f->entries, file);
	fwrite(modes, 1, (size_t)f->modes, file);
	long bytes = ftell(file);
	assert_int_equal(fclose(file), 0);
	return bytes;
}

void index_file_write_tokens(const struct index_file *f, int64_t modulo, void **state)
{
	FILE *file = fopen(fixture_path(state, "x.bin"), "w");
	assert_non_null(file);
	int64_t tokens = 0;
	for (int i = 0; i < f->sequences; i++)
		tokens += f->lengths[i];
	for (int64_t i = 0; i < tokens; i++) {
		int64_t token = i % modulo; /* little-endian: its first bytes are the shorter type's */
		fwrite(&token, (size_t)f->token_bytes, 1, file);
	}
	assert_int_equal(fclose(file), 0);
}
