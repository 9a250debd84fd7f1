/*
 * Products of warpgroups (wgmma) of kernels/cuda/hopper.cuh. A product makes d not a number when it is given, and is
 * done when the warpgroup waits for its group and no thread of the block can run. It reads a, b and shared memory then:
 * what is changed or read before is wrong.
 */
#include <kernels/cuda/hopper.cuh>

#include "tests/cuda_host/block.h"
#include "tests/cuda_host/hopper.h"
#include "tests/cuda_host/report.h"

#include <algorithm>
#include <math.h>
#include <memory>
#include <sanitizer/asan_interface.h>
#include <string.h>
#include <string>
#include <vector>

namespace
{
const int ROWS = 64, DEPTH = 16, MOST_COLUMNS = 128, ROW_BYTES = 128, PIECE_BYTES = 16, PIECE_COLUMNS = 8;

struct given_product {
	cuda_host::product product;
	std::vector<float> before; /* d before it, where no product that is under way leaves it there */
};

typedef std::vector<given_product> group;

struct thread_products {
	group open;
	std::vector<group> under_way;
	group due; /* for which the thread waits */
};

class warpgroup : public cuda_host::waiting_threads
{
      public:
	std::string describe() const override;
	bool advance() override;
	void check_waiting(unsigned thread) const;

	thread_products threads_of_it[WLB_WARPGROUP];

      private:
	void multiply(size_t number);
};

struct descriptor {
	size_t start, next_columns, next_rows; /* bytes */
};

/* Of the block that runs; those that have given no product are NULL. */
std::unique_ptr<warpgroup> warpgroups[1024 / WLB_WARPGROUP];

/* The operands of the product that is done, wide. */
double a[ROWS][DEPTH], b[DEPTH][MOST_COLUMNS];

warpgroup &own_warpgroup()
{
	const unsigned number = cuda_host::block_thread() / WLB_WARPGROUP;
	if ((number + 1) * WLB_WARPGROUP > blockDim.x * blockDim.y * blockDim.z)
		cuda_host::report("wgmma by a warpgroup that has not 128 threads");
	if (warpgroups[number] == nullptr)
		warpgroups[number] = std::make_unique<warpgroup>();
	return *warpgroups[number];
}

thread_products &own_products()
{
	return own_warpgroup().threads_of_it[cuda_host::block_thread() % WLB_WARPGROUP];
}

descriptor decode(uint64_t bits)
{
	const auto bytes = [bits](int from) { return (size_t)(bits >> from & 0x3fff) << 4; };
	return {bytes(0), bytes(16), bytes(32)};
}

/* `last_row` is the offset of the matrix's last row of 128 bytes. */
void check_descriptor(const char *name, uint64_t bits, size_t last_row)
{
	const uint64_t known = (uint64_t)1 << 62 | 0x3fff | (uint64_t)0x3fff << 16 | (uint64_t)0x3fff << 32;
	if (bits >> 62 != 1 || (bits & ~known) != 0)
		cuda_host::report("wgmma: the descriptor 0x%016llx of %s has not the swizzle of 128 bytes alone",
		                  (unsigned long long)bits, name);
	const size_t last = (decode(bits).start + last_row) | (ROW_BYTES - 1);
	if (last >= cuda_host::MOST_SHARED_BYTES || __asan_address_is_poisoned(wlb_dynamic_shared + last))
		cuda_host::report("wgmma: %s, described by 0x%016llx, ends at byte %zu, past the end of shared memory",
		                  name, (unsigned long long)bits, last + 1);
}

void check_operands(const cuda_host::product &product)
{
	const descriptor left = decode(product.a), right = decode(product.b);
	const size_t last_of_8 = 7 * ROW_BYTES;
	if (product.a_registers == nullptr)
		check_descriptor("a", product.a, (ROWS / 8 - 1) * left.next_rows + last_of_8);
	if (product.b_by_rows)
		check_descriptor("b", product.b, (size_t)(product.columns / 8 - 1) * right.next_rows + last_of_8);
	else
		check_descriptor("b", product.b,
		                 (size_t)(product.columns / 64 - 1) * right.next_columns + right.next_rows + last_of_8);
}

bool is_under_way(const thread_products &own, const float *d)
{
	const auto has_d = [d](const group &g) {
		return std::any_of(g.begin(), g.end(),
		                   [d](const given_product &given) { return given.product.d == d; });
	};
	return has_d(own.open) || std::any_of(own.under_way.begin(), own.under_way.end(), has_d);
}

bool is_same(const cuda_host::product &one, const cuda_host::product &other)
{
	return one.columns == other.columns && (one.a_registers == nullptr) == (other.a_registers == nullptr) &&
	       one.a == other.a && one.b == other.b && one.b_by_rows == other.b_by_rows && one.add == other.add;
}

/* The registers of the product, which must still be there. */
void check_registers(const cuda_host::product &product)
{
	const size_t d_bytes = (size_t)product.columns / 2 * sizeof(float);
	if (__asan_region_is_poisoned(product.d, d_bytes) != nullptr ||
	    (product.a_registers != nullptr &&
	     __asan_region_is_poisoned(const_cast<uint32_t *>(product.a_registers), 4 * sizeof(uint32_t)) != nullptr))
		cuda_host::report("wgmma: registers of a product have left their scope before it is waited for");
}

double wide(uint16_t value)
{
	const uint32_t bits = (uint32_t)value << 16;
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* The 8 values of the piece at that place before the swizzle. */
void read_piece(size_t address, double *values)
{
	uint16_t piece[PIECE_COLUMNS];
	memcpy(piece, wlb_dynamic_shared + cuda_host::swizzle(address), sizeof(piece));
	for (int i = 0; i < PIECE_COLUMNS; i++)
		values[i] = wide(piece[i]);
}

/* A row of 16 contiguous values. */
void read_row(const descriptor &from, int row, double (&values)[DEPTH])
{
	const size_t address = from.start + (size_t)(row / 8) * from.next_rows + (size_t)(row % 8) * ROW_BYTES;
	read_piece(address, values);
	read_piece(address + PIECE_BYTES, values + PIECE_COLUMNS);
}

void read_a(uint64_t bits)
{
	const descriptor from = decode(bits);
	for (int row = 0; row < ROWS; row++)
		read_row(from, row, a[row]);
}

void read_b_by_rows(uint64_t bits, int columns)
{
	const descriptor from = decode(bits);
	for (int n = 0; n < columns; n++) {
		double values[DEPTH];
		read_row(from, n, values);
		for (int k = 0; k < DEPTH; k++)
			b[k][n] = values[k];
	}
}

void read_b_by_columns(uint64_t bits, int columns)
{
	const descriptor from = decode(bits);
	for (int k = 0; k < DEPTH; k++)
		for (int n = 0; n < columns; n += PIECE_COLUMNS)
			read_piece(from.start + (size_t)(n / 64) * from.next_columns + (size_t)(n % 64) * 2 +
			                   (size_t)(k / 8) * from.next_rows + (size_t)(k % 8) * ROW_BYTES,
			           &b[k][n]);
}

/* The first of the four threads that hold a row of the product, and whether it is one of their upper rows. */
int first_thread(int row)
{
	return 32 * (row / 16) + 4 * (row % 8);
}

int is_upper(int row)
{
	return row % 16 / 8;
}

/* Every product is exact in double; the sum is rounded once. A GPU rounds between. */
template <int columns> void add_row(int row, double *sums)
{
	for (int n = 0; n < columns; n += 8) {
		double block[8];
		for (int i = 0; i < 8; i++)
			block[i] = sums[n + i];
		for (int k = 0; k < DEPTH; k++)
			for (int i = 0; i < 8; i++)
				block[i] += a[row][k] * b[k][n + i];
		for (int i = 0; i < 8; i++)
			sums[n + i] = block[i];
	}
}

/* Row `row` of d: the given products of the four threads that hold it. */
void multiply_row(int row, const given_product *const (&given)[4])
{
	const int columns = given[0]->product.columns;
	double sums[MOST_COLUMNS] = {};
	for (int c = 0; c < 4 && given[0]->product.add; c++) {
		const float *before = given[c]->before.empty() ? given[c]->product.d : given[c]->before.data();
		for (int n = 2 * c; n < columns; n += 8) {
			sums[n] = before[n / 8 * 4 + 2 * is_upper(row)];
			sums[n + 1] = before[n / 8 * 4 + 2 * is_upper(row) + 1];
		}
	}
	if (columns == 64)
		add_row<64>(row, sums);
	else
		add_row<128>(row, sums);
	for (int c = 0; c < 4; c++)
		for (int n = 2 * c; n < columns; n += 8) {
			given[c]->product.d[n / 8 * 4 + 2 * is_upper(row)] = (float)sums[n];
			given[c]->product.d[n / 8 * 4 + 2 * is_upper(row) + 1] = (float)sums[n + 1];
		}
}

void read_a_registers(int row, const given_product *const (&given)[4])
{
	for (int k = 0; k < DEPTH; k++) {
		const uint32_t pair = given[k % 8 / 2]->product.a_registers[2 * (k / 8) + is_upper(row)];
		a[row][k] = wide((uint16_t)(k % 2 == 0 ? pair : pair >> 16));
	}
}
} // namespace

std::string warpgroup::describe() const
{
	return "waits for products (wgmma.wait_group), as " + std::to_string(threads.size()) +
	       " of the 128 threads of its warpgroup do";
}

/* Each thread must have given the same products: it is compared with the thread that came first. */
void warpgroup::check_waiting(unsigned thread) const
{
	const unsigned first = threads.empty() ? thread : threads.front() % WLB_WARPGROUP;
	const group &mine = threads_of_it[thread].due, &other = threads_of_it[first].due;
	if (mine.size() != other.size())
		cuda_host::report("wgmma: this thread waits for %zu products, thread %u of its warpgroup for %zu",
		                  mine.size(), first, other.size());
	for (size_t i = 0; i < mine.size(); i++) {
		if (!is_same(mine[i].product, other[i].product))
			cuda_host::report("wgmma: product %zu of those for which this thread waits differs from that "
			                  "of thread %u "
			                  "of its warpgroup",
			                  i, first);
		check_registers(mine[i].product);
	}
}

/* Does the products for which all 128 threads wait. */
bool warpgroup::advance()
{
	if (threads.size() < WLB_WARPGROUP)
		return false;
	for (size_t number = 0; number < threads_of_it[0].due.size(); number++)
		multiply(number);
	for (thread_products &thread : threads_of_it)
		thread.due.clear();
	cuda_host::block_wake(*this);
	return true;
}

void warpgroup::multiply(size_t number)
{
	const cuda_host::product &first = threads_of_it[0].due[number].product;
	if (first.a_registers == nullptr)
		read_a(first.a);
	if (first.b_by_rows)
		read_b_by_rows(first.b, first.columns);
	else
		read_b_by_columns(first.b, first.columns);
	for (int row = 0; row < ROWS; row++) {
		const thread_products *const holders = threads_of_it + first_thread(row);
		const given_product *const given[4] = {&holders[0].due[number], &holders[1].due[number],
		                                       &holders[2].due[number], &holders[3].due[number]};
		if (first.a_registers != nullptr)
			read_a_registers(row, given);
		multiply_row(row, given);
	}
}

void cuda_host::products_add(const product &product)
{
	thread_products &own = own_products();
	const size_t values = (size_t)product.columns / 2;
	if (block_thread() % WLB_WARPGROUP == 0)
		check_operands(product);
	given_product given = {product, {}};
	if (product.add && !is_under_way(own, product.d))
		given.before.assign(product.d, product.d + values);
	std::fill(product.d, product.d + values, NAN);
	own.open.push_back(std::move(given));
}

void wlb_wgmma_commit()
{
	thread_products &own = own_products();
	own.under_way.push_back(std::move(own.open));
	own.open.clear();
}

void cuda_host::products_wait(int newest)
{
	warpgroup &group = own_warpgroup();
	const unsigned number = block_thread() % WLB_WARPGROUP;
	thread_products &own = group.threads_of_it[number];
	if (own.under_way.size() <= (size_t)newest)
		return;
	const auto end = own.under_way.end() - newest;
	for (auto due = own.under_way.begin(); due != end; ++due)
		std::move(due->begin(), due->end(), std::back_inserter(own.due));
	own.under_way.erase(own.under_way.begin(), end);
	group.check_waiting(number);
	block_wait(group);
}

void cuda_host::products_end_block()
{
	for (std::unique_ptr<warpgroup> &group : warpgroups)
		group.reset();
}
