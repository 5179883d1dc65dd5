//go:build !purego

#include "textflag.h"

// Sixteen bytes at a time. In X8, X9 and X10 stand the quote, the backslash and
// the last control character, sixteen times each.
#define CONSTANTS \
	MOVQ $0x2222222222222222, AX \
	MOVQ AX, X8                  \
	PUNPCKLQDQ X8, X8            \
	MOVQ $0x5c5c5c5c5c5c5c5c, AX \
	MOVQ AX, X9                  \
	PUNPCKLQDQ X9, X9            \
	MOVQ $0x1f1f1f1f1f1f1f1f, AX \
	MOVQ AX, X10                 \
	PUNPCKLQDQ X10, X10

// The eight low bytes of in, spread as the mask in bits says, go to DI, and DI
// goes behind them. PUNPCKLQDQ puts backslashes beside the bytes, from where the
// shuffle takes them.
#define SPREAD(in, bits) \
	PUNPCKLQDQ X9, in      \
	MOVQ bits, R11         \
	SHLQ $4, R11           \
	MOVOU (R8)(R11*1), X5  \
	PSHUFB X5, in          \
	MOVOU in, (DI)         \
	POPCNTL bits, bits     \
	LEAQ 8(DI)(bits*1), DI

// func escapeVector(dst, src *byte, blocks int, spreads *[256][16]byte) (read, written int)
TEXT ·escapeVector(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ spreads+24(FP), R8
	CONSTANTS
	TESTQ CX, CX
	JZ    done

loop:
	// A control character, which is not above 0x1f, or a byte with its high bit
	// set ends the work.
	MOVOU    (SI), X0
	MOVO     X0, X3
	PMINUB   X10, X3
	PCMPEQB  X0, X3
	POR      X0, X3
	PMOVMSKB X3, BX
	TESTL    BX, BX
	JNZ      done

	// Quotes and backslashes.
	MOVO     X0, X1
	PCMPEQB  X8, X1
	MOVO     X0, X2
	PCMPEQB  X9, X2
	POR      X2, X1
	PMOVMSKB X1, AX
	MOVBLZX  AX, DX
	SHRL     $8, AX
	MOVO     X0, X4
	PSRLDQ   $8, X4
	SPREAD(X0, DX)
	SPREAD(X4, AX)
	ADDQ     $16, SI
	DECQ     CX
	JNZ      loop

done:
	SUBQ src+8(FP), SI
	MOVQ SI, read+32(FP)
	SUBQ dst+0(FP), DI
	MOVQ DI, written+40(FP)
	RET

// Bits for the sixteen bytes at off(SI).
#define MARK(off, bits) \
	MOVOU off(SI), X0  \
	MOVO X0, X1        \
	PCMPEQB X8, X1     \
	MOVO X0, X2        \
	PCMPEQB X9, X2     \
	POR X2, X1         \
	MOVO X0, X3        \
	PMINUB X10, X3     \
	PCMPEQB X0, X3     \
	POR X3, X1         \
	POR X0, X1         \
	PMOVMSKB X1, bits

// func markVector(dst *uint64, src *byte, blocks int)
TEXT ·markVector(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	CONSTANTS
	TESTQ CX, CX
	JZ    end

next:
	MARK(0, AX)
	MARK(16, BX)
	SHLQ $16, BX
	ORQ  BX, AX
	MARK(32, DX)
	SHLQ $32, DX
	ORQ  DX, AX
	MARK(48, R8)
	SHLQ $48, R8
	ORQ  R8, AX
	MOVQ AX, (DI)
	ADDQ $8, DI
	ADDQ $64, SI
	DECQ CX
	JNZ  next

end:
	RET
