# The image of the one binary: static, without a shell, run by nobody.
# docker build --build-arg VERSION=1.2.3 -t skalds .

FROM golang:1.26.8-bookworm AS build

WORKDIR /src
ENV GOCACHE=/go/build

# The modules change rarely: their download is a layer of its own.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download

COPY . .

ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH

# timetzdata: schedules need time zones, and the image below has no files of its own.
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -tags timetzdata -ldflags "-s -w -X main.version=${VERSION}" -o /skalds ./cmd/skalds

FROM scratch

# For TLS to Kafka, Redis and MongoDB with certificates of the public authorities.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /skalds /skalds

USER 65532:65532
EXPOSE 8000

ENTRYPOINT ["/skalds"]
CMD ["version"]
