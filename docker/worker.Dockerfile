# The worker, with the CPU part of LibTorch. For CUDA, build on an image that holds a complete CUDA LibTorch and name it
# with LIBTORCH.
FROM debian:12-slim AS build
ENV AUTOLOCO_CACHE_DIR=/opt/autoloco
WORKDIR /src
COPY . .
RUN deploy/setup.sh \
 && cmake --preset release -DAUTOLOCO_BUILD_TESTS=OFF \
 && cmake --build --preset release --target autoloco-worker

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgrpc++1.51 libprotobuf32 libyaml-cpp0.7 libzstd1 libxxhash0 libhwy1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --create-home autoloco
COPY --from=build /opt/autoloco /opt/autoloco
COPY --from=build /src/build/release/bin/autoloco-worker /usr/local/bin/
ENV OMP_WAIT_POLICY=passive
USER autoloco
ENTRYPOINT ["autoloco-worker"]
